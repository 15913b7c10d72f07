//go:build slow

package kill

func init() { *slow = true }
