package mongoerror

import (
	"errors"
	"testing"
)

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

// TestPrefix: an error tells where it was met, and keeps its code, its details and what it was before.
func TestPrefix(t *testing.T) {
	cause := errors.New("cause")
	err := &Error{Code: BadValue, Message: "no", Labels: []string{"label"}, Cause: cause}
	var got *Error
	if !errors.As(Prefix(err, "here: "), &got) || got.Message != "here: no" || got.Code != BadValue || len(got.Labels) != 1 || !errors.Is(got, cause) {
		t.Errorf("got %+v", got)
	}
	if err.Message != "no" {
		t.Errorf("the error itself became %q", err.Message)
	}
	if got := Prefix(cause, "here: "); got != cause {
		t.Errorf("an error without a code became %v", got)
	}
	if got := Prefix(nil, "here: "); got != nil {
		t.Errorf("no error became %v", got)
	}
}
