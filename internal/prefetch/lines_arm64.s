#include "textflag.h"

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1

next:
	PRFM (R0), PLDL2KEEP
	ADD  $64, R0
	SUBS $1, R1, R1
	BGT  next
	RET

// func Near(p unsafe.Pointer, n int)
TEXT ·Near(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1

next:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $1, R1, R1
	BGT  next
	RET

// func Gather(base, list unsafe.Pointer, n, stride, length int)
TEXT ·Gather(SB), NOSPLIT, $0-40
	MOVD base+0(FP), R0
	MOVD list+8(FP), R1
	MOVD n+16(FP), R2
	MOVD stride+24(FP), R3
	MOVD length+32(FP), R4
	CMP  $0, R2
	BLE  done

each:
	MOVWU (R1), R5
	ADD   R3, R1, R1
	ADD   R5<<3, R0, R5
	ADD   R4, R5, R6
	SUB   $1, R6, R7

line:
	PRFM (R5), PLDL2KEEP
	ADD  $64, R5, R5
	CMP  R6, R5
	BLO  line
	PRFM (R7), PLDL2KEEP
	SUBS $1, R2, R2
	BGT  each

done:
	RET
