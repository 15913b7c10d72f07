// Package prefetch tells the processor which memory is about to be read, so that it comes near while something else is done.
//
// It promises to change nothing but how long later reads take. It never reads what lies at the address: nothing faults, and nobody
// has to hold the memory, so that it may be a mapping that is just being given back. It cannot fail. What is asked for comes
// into the processor's second cache: on their way to the innermost one there can be some twenty lines, and more get lost or make it
// wait, on their way to the second several times as many. What Near asks for comes into the innermost one. Asking for a line costs one
// to three nanoseconds, and waiting for one that nobody asked for a hundred. Where there is no such instruction, or nobody has written
// it down here, nothing happens.
package prefetch
