import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.gte;
import static com.mongodb.client.model.Updates.inc;

import com.mongodb.MongoWriteException;
import com.mongodb.client.ChangeStreamIterable;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoChangeStreamCursor;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.changestream.ChangeStreamDocument;
import java.util.ArrayList;
import java.util.List;
import org.bson.BsonDocument;
import org.bson.Document;

/** Runs the Java driver against the server that its argument names. */
public final class Smoke {
    private static void want(Object got, Object wanted, String what) {
        if (!wanted.equals(got)) {
            throw new IllegalStateException(what + ": got " + got + ", want " + wanted);
        }
    }

    private static void crud(MongoCollection<Document> c) {
        List<Document> docs = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            docs.add(new Document("_id", i).append("n", i % 10));
        }
        c.insertMany(docs);
        want(c.countDocuments(gte("_id", 50)), 50L, "documents from 50");
        want(c.updateMany(eq("n", 3), inc("n", 100)).getModifiedCount(), 10L, "changed documents");
        want(c.deleteMany(eq("n", 103)).getDeletedCount(), 10L, "deleted documents");
        want(c.find().batchSize(7).into(new ArrayList<>()).size(), 90, "documents in batches of 7");
    }

    private static void indexes(MongoCollection<Document> c) {
        want(c.createIndex(Indexes.ascending("key"), new IndexOptions().unique(true).sparse(true)), "key_1", "the index");
        c.insertOne(new Document("_id", "a").append("key", 1));
        try {
            c.insertOne(new Document("_id", "b").append("key", 1));
            throw new IllegalStateException("a second document has the key");
        } catch (MongoWriteException e) {
            want(e.getCode(), 11000, "the code of a duplicate key");
        }
        want(c.listIndexes().into(new ArrayList<>()).size(), 2, "indexes");
    }

    private static void transaction(MongoClient client, MongoCollection<Document> c) {
        try (ClientSession s = client.startSession()) {
            s.startTransaction();
            c.insertOne(s, new Document("_id", "aborted"));
            s.abortTransaction();
            s.withTransaction(() -> {
                c.insertOne(s, new Document("_id", "kept"));
                want(c.countDocuments(eq("_id", "kept")), 0L, "documents that others see before the commit");
                return null;
            });
        }
        want(c.countDocuments(eq("_id", "aborted")), 0L, "documents of the transaction that was aborted");
        want(c.countDocuments(eq("_id", "kept")), 1L, "documents of the transaction that was committed");
    }

    private static void changes(MongoCollection<Document> c) {
        BsonDocument token;
        ChangeStreamIterable<Document> watch = c.watch();
        try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> s = watch.cursor()) {
            c.insertOne(new Document("_id", "first"));
            want(s.next().getDocumentKey().getString("_id").getValue(), "first", "the first change");
            token = s.getResumeToken();
        }
        c.insertOne(new Document("_id", "second"));
        try (MongoChangeStreamCursor<ChangeStreamDocument<Document>> s = watch.resumeAfter(token).cursor()) {
            want(s.next().getDocumentKey().getString("_id").getValue(), "second", "the change after the resume token");
        }
    }

    public static void main(String[] args) {
        try (MongoClient client = MongoClients.create(args[0])) {
            MongoDatabase db = client.getDatabase("java");
            crud(db.getCollection("crud"));
            indexes(db.getCollection("indexes"));
            transaction(client, db.getCollection("transaction"));
            changes(db.getCollection("changes"));
        }
        System.out.println("everything as it should be");
    }
}
