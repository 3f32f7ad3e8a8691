// Package docs holds the tests of the documentation: that its code compiles and runs, that its links lead somewhere, and that
// the defaults it states are those of the code.
package docs
