// Package prefetch tells the processor which memory is about to be read, so that it comes near while something else is done.
//
// It promises to change nothing but how long later reads take. It never reads what lies at the address: nothing faults, and nobody
// has to hold the memory, so that it may be a mapping that is just being given back. It cannot fail. Asking for a line of the
// processor's cache costs about a nanosecond as long as no more than some twenty are on their way, and waiting for one that nobody
// asked for costs a hundred. Where there is no such instruction, or nobody has written it down here, nothing happens.
package prefetch
