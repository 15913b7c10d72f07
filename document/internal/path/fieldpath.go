package path

import (
	"strings"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// MaxNames is how many names a path has at most.
const MaxNames = 200

// The codes of names and paths that are none, which have no names of their own.
const (
	codeEmptyName  = mongoerror.Code(15998)
	codeDollarName = mongoerror.Code(16410)
	codeZeroByte   = mongoerror.Code(16411)
	codeDottedName = mongoerror.Code(16412)
	codeEmptyPath  = mongoerror.Code(40352)
	codeFinalDot   = mongoerror.Code(40353)
)

// Split takes the path of a field apart as MongoDB's stages, projections and expressions read it, and refuses what is none: too many names,
// empty ones, and those that CheckName refuses.
func Split(s string) ([]string, error) {
	if s == "" {
		return nil, mongoerror.New(codeEmptyPath, "FieldPath cannot be constructed with empty string")
	}
	if strings.HasSuffix(s, ".") {
		return nil, mongoerror.New(codeFinalDot, "FieldPath must not end with a '.'.")
	}
	names := strings.Split(s, ".")
	if len(names) > MaxNames {
		return nil, mongoerror.New(mongoerror.Overflow, "FieldPath is too long")
	}
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// CheckName refuses what cannot be one name of a path: "", one with a dot or a zero byte, and one that begins with a dollar, but for the
// fields of a DBRef.
func CheckName(name string) error {
	switch {
	case name == "":
		return mongoerror.New(codeEmptyName, "FieldPath field names may not be empty strings.")
	case name[0] == '$' && name != "$id" && name != "$ref" && name != "$db":
		return mongoerror.New(codeDollarName, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
	case strings.IndexByte(name, 0) >= 0:
		return ZeroByte()
	case strings.IndexByte(name, '.') >= 0:
		return mongoerror.New(codeDottedName, "FieldPath field names may not contain '.'. Consider using $getField or $setField.")
	}
	return nil
}

// ZeroByte is the error of a name that BSON cannot hold: it would end there.
func ZeroByte() error {
	return mongoerror.New(codeZeroByte, "FieldPath field names may not contain '\\0'.")
}
