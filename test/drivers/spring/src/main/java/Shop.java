import com.mongodb.MongoWriteException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.domain.Sort;
import org.springframework.data.geo.Distance;
import org.springframework.data.geo.Metrics;
import org.springframework.data.geo.Point;
import org.springframework.data.mongodb.MongoTransactionManager;
import org.springframework.data.mongodb.core.BulkOperations;
import org.springframework.data.mongodb.core.CollectionOptions;
import org.springframework.data.mongodb.core.FindAndModifyOptions;
import org.springframework.data.mongodb.core.MongoTemplate;
import org.springframework.data.mongodb.core.SimpleMongoClientDatabaseFactory;
import org.springframework.data.mongodb.core.aggregation.Aggregation;
import org.springframework.data.mongodb.core.convert.DefaultDbRefResolver;
import org.springframework.data.mongodb.core.convert.MappingMongoConverter;
import org.springframework.data.mongodb.core.convert.MongoCustomConversions;
import org.springframework.data.mongodb.core.geo.GeoJsonPoint;
import org.springframework.data.mongodb.core.index.CompoundIndex;
import org.springframework.data.mongodb.core.index.GeoSpatialIndexType;
import org.springframework.data.mongodb.core.index.GeoSpatialIndexed;
import org.springframework.data.mongodb.core.index.Indexed;
import org.springframework.data.mongodb.core.mapping.DBRef;
import org.springframework.data.mongodb.core.mapping.Document;
import org.springframework.data.mongodb.core.mapping.MongoMappingContext;
import org.springframework.data.mongodb.core.mapping.TimeSeries;
import org.springframework.data.mongodb.core.messaging.ChangeStreamRequest;
import org.springframework.data.mongodb.core.messaging.DefaultMessageListenerContainer;
import org.springframework.data.mongodb.core.query.Collation;
import org.springframework.data.mongodb.core.query.Criteria;
import org.springframework.data.mongodb.core.query.Query;
import org.springframework.data.mongodb.core.query.Update;
import org.springframework.data.mongodb.core.schema.JsonSchemaProperty;
import org.springframework.data.mongodb.core.schema.MongoJsonSchema;
import org.springframework.data.mongodb.repository.MongoRepository;
import org.springframework.data.mongodb.repository.support.MongoRepositoryFactory;
import org.springframework.transaction.support.TransactionTemplate;

/** Runs what applications do with Spring Data against a server; the argument is its address. */
public class Shop {
    @Document("person")
    @CompoundIndex(def = "{'age': 1, 'name': -1}")
    public static class Person {
        @Id String id;
        @Indexed(unique = true) String email;
        String name;
        int age;
        @GeoSpatialIndexed(type = GeoSpatialIndexType.GEO_2DSPHERE) GeoJsonPoint home;
        @Indexed(expireAfter = "10d") Date until = new Date();
        @DBRef Person friend;
        @Version Long version;
        List<String> tags = new ArrayList<>();

        static Person of(int i, Person friend) {
            Person p = new Person();
            p.email = "e" + i;
            p.name = "n" + i % 4;
            p.age = i;
            p.home = new GeoJsonPoint(i * 0.01, i * 0.01);
            p.friend = friend;
            p.tags.add("t" + i % 3);
            return p;
        }
    }

    @TimeSeries(collection = "weather", timeField = "at", metaField = "place")
    public static class Weather {
        @Id String id;
        Instant at = Instant.now();
        String place;
        double celsius;
    }

    public interface People extends MongoRepository<Person, String> {
        List<Person> findByAgeGreaterThanOrderByNameAsc(int age);

        List<Person> findByHomeNear(Point p, Distance d);

        long countByNameStartingWith(String start);

        @org.springframework.data.mongodb.repository.Update("{'$inc': {'age': ?1}}")
        long findAndIncrementAgeByName(String name, int by);

        boolean existsByEmail(String email);

        long deleteByAgeLessThan(int age);
    }

    static void is(Object got, Object want) {
        if (!want.equals(got)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    interface Call {
        void run() throws Exception;
    }

    static void fails(Class<? extends Exception> with, Call call) throws Exception {
        try {
            call.run();
        } catch (Exception e) {
            if (with.isInstance(e)) {
                return;
            }
            throw e;
        }
        throw new AssertionError("no " + with.getSimpleName());
    }

    public static void main(String[] args) throws Exception {
        try (MongoClient client = MongoClients.create(args[0])) {
            var factory = new SimpleMongoClientDatabaseFactory(client, "shop");
            var mapping = new MongoMappingContext();
            mapping.setSimpleTypeHolder(new MongoCustomConversions(List.of()).getSimpleTypeHolder());
            mapping.setAutoIndexCreation(true);
            mapping.afterPropertiesSet();
            var converter = new MappingMongoConverter(new DefaultDbRefResolver(factory), mapping);
            converter.afterPropertiesSet();
            var template = new MongoTemplate(factory, converter);
            var people = new MongoRepositoryFactory(template).getRepository(People.class);
            repositories(template, people);
            templates(template, people);
            transactions(factory, template, people);
            collections(template);
            changes(template, people);
        }
        System.exit(0); // listeners have threads of their own
    }

    static void repositories(MongoTemplate template, People people) throws Exception {
        Person last = null;
        for (int i = 0; i < 30; i++) {
            last = people.save(Person.of(i, last));
        }
        is(people.findById(last.id).get().friend.email, "e28");
        is(template.indexOps(Person.class).getIndexInfo().size(), 5);
        fails(DuplicateKeyException.class, () -> people.save(Person.of(1, null)));
        is(people.findByAgeGreaterThanOrderByNameAsc(10).size(), 19);
        is(people.findByHomeNear(new Point(0, 0), new Distance(5, Metrics.KILOMETERS)).size(), 4);
        is(people.countByNameStartingWith("n"), 30L);
        is(people.findAll(PageRequest.of(1, 7, Sort.by("age"))).getTotalPages(), 5);
        is(people.existsByEmail("e3"), true);
        is(people.deleteByAgeLessThan(3), 3L);
        is(people.findAndIncrementAgeByName("n1", 100), 7L);
        Person mine = people.findById(last.id).get();
        Person theirs = people.findById(last.id).get();
        people.save(mine);
        fails(OptimisticLockingFailureException.class, () -> people.save(theirs));
    }

    static void templates(MongoTemplate template, People people) {
        var all = new Query();
        template.updateMulti(Query.query(Criteria.where("name").is("n1")),
                new Update().push("tags").slice(-3).sort(Sort.Direction.DESC).each("a", "b").currentDate("until").multiply("age", 2),
                Person.class);
        is(template.findDistinct(all, "tags", Person.class, String.class).size(), 5);
        var one = template.findAndModify(Query.query(Criteria.where("email").is("new")), new Update().setOnInsert("age", 3),
                FindAndModifyOptions.options().upsert(true).returnNew(true), Person.class);
        is(one.age, 3);
        var bulk = template.bulkOps(BulkOperations.BulkMode.UNORDERED, Person.class);
        bulk.updateOne(Query.query(Criteria.where("age").is(6)), new Update().inc("age", 1));
        bulk.remove(Query.query(Criteria.where("email").is("new")));
        is(bulk.execute().getDeletedCount(), 1);
        var sorted = new Query().collation(Collation.of("en").strength(2)).with(Sort.by("name")).cursorBatchSize(3);
        is(template.find(sorted, Person.class).size(), 27);
        var groups = template.aggregate(Aggregation.newAggregation(Aggregation.unwind("tags"),
                Aggregation.group("tags").count().as("n").avg("age").as("mean"), Aggregation.sort(Sort.Direction.ASC, "_id")),
                "person", org.bson.Document.class).getMappedResults();
        is(groups.size(), 5);
        is(people.count(), 27L);
    }

    static void transactions(SimpleMongoClientDatabaseFactory factory, MongoTemplate template, People people) throws Exception {
        var within = new TransactionTemplate(new MongoTransactionManager(factory));
        fails(IllegalStateException.class, () -> within.executeWithoutResult(status -> {
            people.save(Person.of(100, null));
            template.createCollection("gone");
            throw new IllegalStateException("rolls back");
        }));
        is(people.existsByEmail("e100") || template.collectionExists("gone"), false);
        within.executeWithoutResult(status -> people.save(Person.of(100, null)));
        is(people.existsByEmail("e100"), true);
    }

    static void collections(MongoTemplate template) throws Exception {
        template.createCollection(Weather.class);
        for (int i = 0; i < 10; i++) {
            Weather w = new Weather();
            w.place = "p" + i % 2;
            template.insert(w);
        }
        is(template.find(Query.query(Criteria.where("place").is("p1")), Weather.class).size(), 5);
        template.createCollection("checked", CollectionOptions.empty().strictValidation().failOnValidationError()
                .schema(MongoJsonSchema.builder().required("a").properties(JsonSchemaProperty.int32("a").gt(3)).build()));
        fails(MongoWriteException.class, () -> template.getCollection("checked").insertOne(new org.bson.Document("a", 1)));
        template.createView("old", Person.class, Aggregation.match(Criteria.where("age").gt(20)));
        is(template.getCollection("old").countDocuments() > 0, true);
    }

    static void changes(MongoTemplate template, People people) throws Exception {
        var container = new DefaultMessageListenerContainer(template);
        container.start();
        var seen = new LinkedBlockingQueue<String>();
        var request = ChangeStreamRequest.<Person>builder(message -> seen.add(message.getBody().email)).collection("person")
                .filter(Aggregation.newAggregation(Aggregation.match(Criteria.where("operationType").is("insert")))).build();
        is(container.register(request, Person.class).await(Duration.ofSeconds(30)), true);
        for (int i = 200; seen.isEmpty(); i++) { // a subscription is active a moment before its stream is
            people.save(Person.of(i, null));
            Thread.sleep(20);
        }
        is(seen.poll(30, TimeUnit.SECONDS).startsWith("e2"), true);
        container.stop();
    }
}
