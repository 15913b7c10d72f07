// Runs mongoose against the server that the argument names.
import assert from "node:assert/strict";
import mongoose from "mongoose";

await mongoose.connect(process.argv[2], { dbName: "mongoose", serverSelectionTimeoutMS: 10000 });
const Author = mongoose.model("Author", new mongoose.Schema({ name: { type: String, unique: true } }));
const Book = mongoose.model(
  "Book",
  new mongoose.Schema(
    { title: { type: String, required: true, index: true }, author: { type: "ObjectId", ref: "Author" }, tags: [String] },
    { timestamps: true },
  ),
);
await Promise.all([Author.init(), Book.init()]);

const author = await Author.create({ name: "Le Guin" });
await assert.rejects(Author.create({ name: "Le Guin" }), { code: 11000 });
await Book.create([{ title: "Rocannon", author, tags: ["a", "b"] }, { title: "Tehanu", author, tags: ["b"] }]);
const found = await Book.findOne({ title: "Tehanu" }).populate("author");
assert.equal(found.author.name, "Le Guin");
found.tags.push("c");
await found.save();
assert.equal(await Book.countDocuments({ tags: "b" }), 2);
assert.deepEqual((await Book.distinct("tags")).sort(), ["a", "b", "c"]);
assert.equal((await Book.updateMany({}, { $pull: { tags: "b" } })).modifiedCount, 2);
await mongoose.connection.transaction(async (session) => {
  await Book.create([{ title: "Malafrena" }], { session });
});
assert.equal(await Book.estimatedDocumentCount(), 3);
assert.equal((await Book.collection.indexes()).length, 2);
await mongoose.disconnect();
console.log("everything as it should be");
