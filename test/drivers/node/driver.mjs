// Runs the Node driver against the server that the argument names.
import assert from "node:assert/strict";
import { once } from "node:events";
import { GridFSBucket, MongoClient } from "mongodb";

const client = await MongoClient.connect(process.argv[2], { serverSelectionTimeoutMS: 10000 });
const db = client.db("node");

async function crud() {
  const c = db.collection("crud");
  await c.insertMany(Array.from({ length: 100 }, (_, i) => ({ _id: i, n: i % 10 })));
  assert.equal(await c.countDocuments({ _id: { $gte: 50 } }), 50);
  assert.equal((await c.updateMany({ n: 3 }, { $inc: { n: 100 } })).modifiedCount, 10);
  assert.equal((await c.deleteMany({ n: 103 })).deletedCount, 10);
  assert.equal((await c.find().batchSize(7).toArray()).length, 90);
  assert.equal((await c.findOneAndUpdate({ _id: 1 }, { $set: { a: 1 } }, { returnDocument: "after" })).a, 1);
  const sums = await c.aggregate([{ $group: { _id: "$n", sum: { $sum: "$_id" } } }, { $sort: { _id: 1 } }]).toArray();
  assert.deepEqual(sums[0], { _id: 0, sum: 450 });
}

async function indexes() {
  const c = db.collection("indexes");
  assert.equal(await c.createIndex({ key: 1 }, { unique: true, sparse: true }), "key_1");
  await c.insertOne({ _id: "a", key: 1 });
  await assert.rejects(c.insertOne({ _id: "b", key: 1 }), { code: 11000, keyPattern: { key: 1 }, keyValue: { key: 1 } });
  assert.equal((await c.indexes()).length, 2);
}

async function transactions() {
  const c = db.collection("transactions");
  await client.withSession(async (session) => {
    session.startTransaction();
    await c.insertOne({ _id: "aborted" }, { session });
    await session.abortTransaction();
    await session.withTransaction(async () => {
      await c.insertOne({ _id: "kept" }, { session });
      assert.equal(await c.countDocuments({ _id: "kept" }), 0);
    });
  });
  assert.deepEqual(await c.find().toArray(), [{ _id: "kept" }]);
}

async function changes() {
  const c = db.collection("changes");
  await c.insertOne({ _id: "before" });
  const watch = c.watch();
  // The first call opens the stream; what comes after it is seen.
  assert.equal(await watch.tryNext(), null);
  await c.insertOne({ _id: "first" });
  assert.equal((await watch.next()).documentKey._id, "first");
  const resumeAfter = watch.resumeToken;
  await watch.close();
  await c.insertOne({ _id: "second" });
  const resumed = c.watch([], { resumeAfter });
  assert.equal((await resumed.next()).documentKey._id, "second");
  await resumed.close();
}

async function gridfs() {
  const bucket = new GridFSBucket(db, { chunkSizeBytes: 1000 });
  const sent = Buffer.alloc(123456, "pando");
  const upload = bucket.openUploadStream("file");
  upload.end(sent);
  await once(upload, "finish");
  const parts = [];
  for await (const part of bucket.openDownloadStreamByName("file")) parts.push(part);
  assert.ok(Buffer.concat(parts).equals(sent));
}

for (const part of [crud, indexes, transactions, changes, gridfs]) {
  await part();
  console.log(`${part.name}: as it should be`);
}
await client.close();
