package codec

import (
	"fmt"
	"math/rand/v2"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// flights returns n documents like those of the flights data: 19 fields and an _id.
func flights(n int) []bsoncore.Document {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]bsoncore.Document, n)
	for i := range list {
		day, minute := i/900, i%900+300
		delay := r.IntN(30) - 10
		list[i] = document(bson.D{
			{Key: "_id", Value: int32(i)}, {Key: "year", Value: int32(2013)}, {Key: "month", Value: int32(day/30%12 + 1)},
			{Key: "day", Value: int32(day%30 + 1)}, {Key: "dep_time", Value: int32(minute/60*100 + minute%60)},
			{Key: "sched_dep_time", Value: int32(minute/60*100 + minute%60 - delay)}, {Key: "dep_delay", Value: int32(delay)},
			{Key: "arr_time", Value: int32(r.IntN(2400))}, {Key: "sched_arr_time", Value: int32(r.IntN(2400))},
			{Key: "arr_delay", Value: int32(delay + r.IntN(10))}, {Key: "carrier", Value: []string{"UA", "AA", "B6", "DL", "EV"}[r.IntN(5)]},
			{Key: "flight", Value: int32(r.IntN(5000))}, {Key: "tailnum", Value: fmt.Sprintf("N%dUA", r.IntN(3000))},
			{Key: "origin", Value: []string{"EWR", "LGA", "JFK"}[r.IntN(3)]}, {Key: "dest", Value: fmt.Sprintf("D%02d", r.IntN(100))},
			{Key: "air_time", Value: int32(r.IntN(300) + 30)}, {Key: "distance", Value: int32(r.IntN(2500) + 80)},
			{Key: "hour", Value: int32(minute / 60)}, {Key: "minute", Value: int32(minute % 60)},
			{Key: "time_hour", Value: bson.DateTime(1356998400000 + int64(day)*86400000 + int64(minute/60)*3600000)},
		})
	}
	return list
}

// packages returns n documents like those of the debian-packages data: text, integers, two arrays.
func packages(n int) []bsoncore.Document {
	r := rand.New(rand.NewPCG(3, 4))
	words := func(of string, most int) bson.A {
		list := bson.A{}
		for range r.IntN(most) {
			list = append(list, fmt.Sprintf("%s%d", of, r.IntN(500)))
		}
		return list
	}
	list := make([]bsoncore.Document, n)
	for i := range list {
		d := bson.D{
			{Key: "_id", Value: fmt.Sprintf("package-%06d", i)}, {Key: "version", Value: fmt.Sprintf("%d.%d-%d", r.IntN(9), r.IntN(99), r.IntN(5))},
			{Key: "section", Value: fmt.Sprintf("section%d", r.IntN(40))}, {Key: "priority", Value: "optional"},
			{Key: "architecture", Value: []string{"amd64", "all"}[r.IntN(2)]}, {Key: "installedKiB", Value: int32(r.IntN(100000))},
			{Key: "bytes", Value: int64(r.IntN(100000000))}, {Key: "depends", Value: words("lib", 12)}, {Key: "tags", Value: words("role::", 8)},
			{Key: "summary", Value: fmt.Sprintf("A package that does thing number %d, and it does it well", r.IntN(1e9))},
		}
		if r.IntN(3) == 0 {
			d = append(d, bson.E{Key: "source", Value: fmt.Sprintf("source%d", r.IntN(3000))})
		}
		list[i] = document(d)
	}
	return list
}

// document returns d as BSON.
func document(d bson.D) bsoncore.Document {
	raw, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	return raw
}
