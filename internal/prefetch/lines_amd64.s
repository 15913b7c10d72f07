#include "textflag.h"

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

next:
	PREFETCHT1 (AX)
	ADDQ       $64, AX
	DECQ       CX
	JGT        next
	RET

// func Near(p unsafe.Pointer, n int)
TEXT ·Near(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

next:
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	DECQ       CX
	JGT        next
	RET

// func Gather(base, list unsafe.Pointer, n, stride, length int)
TEXT ·Gather(SB), NOSPLIT, $0-40
	MOVQ base+0(FP), AX
	MOVQ list+8(FP), BX
	MOVQ n+16(FP), CX
	MOVQ stride+24(FP), DX
	MOVQ length+32(FP), SI

	TESTQ CX, CX
	JLE   done

each:
	MOVL (BX), DI
	LEAQ (AX)(DI*8), DI
	LEAQ (DI)(SI*1), R8
	ADDQ DX, BX

line:
	PREFETCHT1 (DI)
	ADDQ       $64, DI
	CMPQ       DI, R8
	JCS        line
	PREFETCHT1 -1(R8)
	DECQ       CX
	JGT        each

done:
	RET
