import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/**
 * Serves from memory on the port that the first argument names, until it is killed. The server says that it speaks a newer version
 * of the protocol than it would by itself, as drivers refuse it otherwise; what the benchmark asks has not changed since.
 */
public class Launch {
    static class Newer implements MongoVersion {
        public List<Integer> getVersionArray() {
            return List.of(5, 0, 0);
        }

        public int getWireVersion() {
            return 13;
        }
    }

    public static void main(String[] args) throws Exception {
        MemoryBackend backend = new MemoryBackend();
        backend.version(new Newer());
        new MongoServer(backend).bind("127.0.0.1", Integer.parseInt(args[0]));
        Thread.currentThread().join();
    }
}
