package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTour(t *testing.T) {
	var out strings.Builder
	if err := tour(t.Context(), &out, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	const want = `The carriers that are latest:
  {"_id":"EV","flights":60,"name":"ExpressJet Airlines Inc.","late":22.1}
  {"_id":"DL","flights":75,"name":"Delta Air Lines Inc.","late":11.8}
  {"_id":"B6","flights":93,"name":"JetBlue Airways","late":8.9}
Packages that depend on zlib1g: 13 by index "depends_1", 13 documents examined
  {"_id":"cargo-c","summary":"Helper program to build and install c-like libraries"}
  {"_id":"zynaddsubfx-lv2","summary":"lv2 plugin of zynaddsubfx"}
Who flies what:
  {"_id":{"carrier":"UA","maker":"BOEING"},"planes":50}
  {"_id":{"carrier":"EV","maker":"EMBRAER"},"planes":43}
  {"_id":{"carrier":"B6","maker":"AIRBUS"},"planes":36}
FL722 to ATL left 285 minutes late
UA1130 to DFW left 264 minutes late
"update" in "flights"
"insert" in "log"
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
