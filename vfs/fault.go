package vfs

import (
	"fmt"
	"unsafe"
)

// Fault turns what recover returned into an error when it is a memory fault inside of mapped, which debug.SetPanicOnFault makes
// a panic. Any other panic goes on. It answers nil for nil.
func Fault(recovered any, mapped []byte) error {
	if recovered == nil {
		return nil
	}
	fault, ok := recovered.(interface {
		error
		Addr() uintptr
	})
	if !ok {
		panic(recovered)
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mapped)))
	if addr := fault.Addr(); addr < start || addr >= start+uintptr(len(mapped)) {
		panic(recovered)
	}
	return fmt.Errorf("fault in the mapping: %w", fault)
}
