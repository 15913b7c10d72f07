// Package tools names the exact version of MongoDB's database tools that the tests of package drivers build and run against pando
// serve. It has a module of its own, because Pando is not to depend on what they need, and no code.
package tools
