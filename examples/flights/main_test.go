package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTour(t *testing.T) {
	var out strings.Builder
	if err := tour(&out, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	const want = `coreutils: {"_id": "coreutils", "version": "9.1-1", "section": "utils",...
package libc6
package libcairo2-ocaml-dev
package libcatalyst-plugin-setenv-perl
package libcdkr-java
package libclass-inner-perl
package libcodec2-dev
package libcomidi-clojure
flight 2013-07-31T16:00:00Z AA1850
flight 2013-07-30T21:00:00Z B6299
flight 2013-07-30T10:00:00Z UA1444
44 flights in July
backup: 0 records in default
backup: 501 records in flights
backup: 307 records in packages
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
