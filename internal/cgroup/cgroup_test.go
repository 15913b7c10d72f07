package cgroup

import "testing"

func TestGroupsOfAProcess(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Groups
	}{
		{"none", "", Groups{}},
		{"version 2", "0::/user.slice/run-1.scope\n", Groups{Unified: "/user.slice/run-1.scope"}},
		{"version 2, at its root", "0::/\n", Groups{Unified: "/"}},
		{"version 1", "3:cpu,cpuacct:/b\n4:hugetlb,memory:/a\n", Groups{Memory: "/a"}},
		{"version 1 without memory", "3:cpu,cpuacct:/b\n1:name=systemd:/c\n", Groups{}},
		{"both", "4:memory:/a\n0::/b\n", Groups{Unified: "/b", Memory: "/a"}},
		{"a path with colons", "0::/a:b:c\n", Groups{Unified: "/a:b:c"}},
		{"what makes no sense", "x\n0:\n:::\n", Groups{}},
	} {
		if got := Parse(c.text); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
