package mongoerror

import "testing"

// TestNames: clients are told the name of a code, which for those of single checks in MongoDB is their number.
func TestNames(t *testing.T) {
	for code, want := range map[Code]string{
		2: "BadValue", 146: "ExceededMemoryLimit", 159: "DurationOverflow", 232: "MaxSubPipelineDepthExceeded", 11000: "DuplicateKey", 51091: "Location51091",
	} {
		if got := code.String(); got != want {
			t.Errorf("%d is %s, not %s", code, got, want)
		}
	}
}
