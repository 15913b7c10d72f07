package drivers

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestTools moves databases between a mongod and pando serve with MongoDB's own tools, in both directions, by the commands of
// docs/mongodb.md, and compares every document by its bytes.
func TestTools(t *testing.T) {
	need(t, "go", "sh", "python3")
	t.Parallel()
	bin := t.TempDir()
	for _, tool := range []string{"mongodump", "mongorestore", "mongoexport", "mongoimport"} {
		built(t, filepath.Join(bin, tool), tool)
	}
	theirs, ours := replicaSet(t), serve(t)
	them, us := connect(t, theirs), connect(t, ours)
	m := mover{t: t, bin: bin, dir: t.TempDir(), old: theirs, new: ours}
	fill(them)
	move := func(from, to *connection, lines ...string) {
		t.Helper()
		empty(to)
		for _, line := range lines {
			m.sh(line)
		}
		same(t, from, to)
	}
	t.Run("from mongod", func(t *testing.T) { move(them, us, documented(t, "from mongod")...) })
	t.Run("back", func(t *testing.T) { move(us, them, documented(t, "back")...) })
	t.Run("one database, compressed", func(t *testing.T) {
		move(them, us, "mongodump --quiet --uri mongodb://OLD --gzip --archive=dump.gz --db moved --dumpDbUsersAndRoles",
			"mongodump --quiet --uri mongodb://OLD --db other --out other",
			"mongorestore --quiet --uri mongodb://NEW --gzip --archive=dump.gz --nsInclude 'moved.*' --db moved --restoreDbUsersAndRoles",
			"mongorestore --quiet --uri mongodb://NEW other")
		move(us, them, "mongodump --quiet --uri mongodb://NEW --gzip --db moved --dumpDbUsersAndRoles --out dump",
			"mongodump --quiet --uri mongodb://NEW --db other --out dump",
			"mongorestore --quiet --uri mongodb://OLD --gzip --db moved --restoreDbUsersAndRoles dump/moved",
			"mongorestore --quiet --uri mongodb://OLD --db other dump/other")
	})
	t.Run("while others write", func(t *testing.T) { meanwhile(t, m, us, them, m.new, documented(t, "back while others write")) })
	t.Run("from mongod while others write", func(t *testing.T) {
		meanwhile(t, m, them, us, m.old, documented(t, "from mongod while others write"))
		want, got := uuids(them), uuids(us)
		if !maps.Equal(want, got) {
			t.Errorf("the UUIDs are %v, were %v", got, want)
		}
	})
	t.Run("text", func(t *testing.T) { textual(t, m, us, them) })
	t.Run("what cannot be done", func(t *testing.T) {
		them.run("moved", d("createIndexes", "many", "indexes", bson.A{d("key", d("s", "text"), "name", "words")}))
		m.sh("mongodump --quiet --uri mongodb://OLD --db moved --collection many --out text")
		m.fails("mongorestore --uri mongodb://NEW --drop text", "text indexes are not supported")
		m.sh("mongorestore --quiet --uri mongodb://NEW --drop --noIndexRestore text")
	})
}

// meanwhile moves databases that somebody writes to: what arrives is one moment of them. addr is where they are.
func meanwhile(t *testing.T, m mover, from, to *connection, addr string, lines []string) {
	writer, full, stop, stopped := connect(t, addr), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := int32(0); ; i++ {
			if i == 11 { // from here on each moment has ten or eleven documents
				close(full)
			}
			select {
			case <-stop:
				return
			default:
			}
			writer.run("moved", d("insert", "written", "documents", bson.A{d("_id", i, "a", bson.A{})}))
			writer.run("moved", d("update", "written", "updates", bson.A{d("q", d("_id", i), "u", d("$push", d("a", i), "$set", d("z", true)))}))
			writer.run("moved", d("delete", "written", "deletes", bson.A{d("q", d("_id", i-10), "limit", int32(1))}))
		}
	}()
	select {
	case <-full:
	case <-stopped: // it failed, and said why
		t.FailNow()
	}
	m.sh(lines[0])
	close(stop)
	<-stopped
	empty(to)
	for _, line := range lines[1:] {
		m.sh(line)
	}
	// The last documents of one moment are ten or eleven in a row, and all but the newest have been updated.
	docs := to.all("moved", d("find", "written", "sort", d("_id", int32(1))))
	if len(docs) != 10 && len(docs) != 11 {
		t.Fatalf("%d documents arrived: %v", len(docs), docs)
	}
	for i, doc := range docs {
		id := doc.Lookup("_id").Int32()
		if id != docs[0].Lookup("_id").Int32()+int32(i) {
			t.Errorf("document %d is %s behind %s", i, doc, docs[0])
		}
		if v, err := doc.LookupErr("z"); i < len(docs)-1 && (err != nil || !v.Boolean() || doc.Lookup("a", "0").Int32() != id) {
			t.Errorf("document %d is %s", i, doc)
		}
	}
	from.run("moved", d("drop", "written"))
	to.run("moved", d("drop", "written"))
	same(t, from, to)
}

// uuids returns the UUIDs of the moved collections by their names.
func uuids(c *connection) map[string]string {
	ids := map[string]string{}
	for _, db := range moved {
		for _, info := range c.all(db, d("listCollections", int32(1), "filter", d("type", "collection", "name", d("$not", bson.Regex{Pattern: "^system\\."})))) {
			_, id := info.Lookup("info", "uuid").Binary()
			ids[db+"."+info.Lookup("name").StringValue()] = string(id)
		}
	}
	return ids
}

// textual moves one collection as Extended JSON, and changes it with mongoimport's modes.
func textual(t *testing.T, m mover, us, them *connection) {
	for _, line := range documented(t, "one collection as text") {
		m.sh(line)
	}
	for _, c := range []*connection{us, them} {
		if n := len(c.all("copies", d("find", "many"))); n != 3000 {
			t.Errorf("%d of 3000 documents arrived", n)
		}
	}
	m.sh("mongoexport --quiet --uri mongodb://NEW --db moved --collection many --query '{\"n\": 1}' --type csv --fields _id,s --sort '{_id: 1}' --out ours.csv")
	m.sh("mongoexport --quiet --uri mongodb://OLD --db moved --collection many --query '{\"n\": 1}' --type csv --fields _id,s --sort '{_id: 1}' --out theirs.csv")
	m.sh("cmp ours.csv theirs.csv")
	for _, server := range []string{"OLD", "NEW"} {
		m.sh("head -n 100 many.json | sed 's/\"s\":\"s/\"s\":\"new/' | mongoimport --quiet --uri mongodb://" + server + " --db copies --collection many --mode upsert")
		m.sh("head -n 200 many.json | tail -n 100 | sed 's/\"s\":\"s/\"more\":\"new/' | mongoimport --quiet --uri mongodb://" + server + " --db copies --collection many --mode merge")
		m.sh("tail -n 100 many.json | mongoimport --quiet --uri mongodb://" + server + " --db copies --collection many --mode delete")
		m.sh("mongoexport --quiet --uri mongodb://" + server + " --db copies --collection many --jsonFormat canonical --sort '{_id: 1}' --out " + server + ".json")
	}
	m.sh("cmp OLDFILE NEWFILE")
}

// mover runs the lines of a shell in which OLD is mongod's address and NEW is ours.
type mover struct {
	t        *testing.T
	bin, dir string
	old, new string
}

func (m mover) sh(line string) {
	m.t.Helper()
	run := strings.NewReplacer("OLDFILE", "OLD.json", "NEWFILE", "NEW.json", "//OLD", "//"+m.old, "//NEW", "//"+m.new).Replace(line)
	out, err := do(m.t, m.dir, 6*time.Minute, []string{"PATH=" + m.bin + string(os.PathListSeparator) + os.Getenv("PATH")}, "sh", "-ec", run)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", line, err, last(out, 4000))
	}
}

// fails runs a line that has to fail, and to say why.
func (m mover) fails(line, why string) {
	m.t.Helper()
	run := strings.NewReplacer("//OLD", "//"+m.old, "//NEW", "//"+m.new).Replace(line)
	out, err := do(m.t, m.dir, 6*time.Minute, []string{"PATH=" + m.bin + string(os.PathListSeparator) + os.Getenv("PATH")}, "sh", "-ec", run)
	if err == nil || !strings.Contains(out, why) {
		m.t.Errorf("%s: %v, and does not say %q\n%s", line, err, why, last(out, 4000))
	}
}

// documented returns the commands of a paragraph of docs/mongodb.md: the lines of the block of code behind "<!-- moving: NAME -->".
func documented(t *testing.T, name string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mongodb.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "<!-- moving: "+name+" -->\n\n```\n")
	block, _, ended := strings.Cut(rest, "\n```")
	if !found || !ended {
		t.Fatalf("docs/mongodb.md has no block of commands for %q", name)
	}
	return strings.Split(block, "\n")
}
