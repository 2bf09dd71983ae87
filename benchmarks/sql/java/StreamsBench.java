import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * The statements of the benchmark as a Kafka Streams program: the same inputs, the same results, JSON read and written by
 * Jackson's tree model. Arguments: topology, bootstrap, application id, state directory, guarantee, threads, commit interval
 * (0: Streams' own), output topic, input topics. Prints the states it passes through.
 */
public final class StreamsBench {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<JsonNode> TREE = Serdes.serdeFrom(
        (topic, tree) -> {
            try {
                return tree == null ? null : JSON.writeValueAsBytes(tree);
            } catch (JsonProcessingException problem) {
                throw new SerializationException(problem);
            }
        },
        (topic, bytes) -> {
            try {
                return bytes == null ? null : JSON.readTree(bytes);
            } catch (IOException problem) {
                throw new SerializationException(problem);
            }
        });
    private static final Duration WINDOW = Duration.ofMinutes(1);
    /** What windows have when nothing is said. */
    private static final Duration GRACE = Duration.ofHours(24);
    private static final Duration WITHIN = Duration.ofSeconds(10);

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[1]);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[2]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[3]);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[4]);
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments[5]);
        if (!arguments[6].equals("0")) {
            properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, arguments[6]);
        }
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, "1");
        properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        String[] inputs = Arrays.copyOfRange(arguments, 8, arguments.length);
        StreamsBuilder builder = new StreamsBuilder();
        build(builder, arguments[0], arguments[7], inputs);
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setUncaughtExceptionHandler(problem -> {
            problem.printStackTrace(System.out);
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            System.out.println("state " + now);
            System.out.flush();
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.start();
        Thread.currentThread().join();
    }

    private static void build(StreamsBuilder builder, String topology, String output, String[] inputs) {
        KStream<String, JsonNode> stream = builder.stream(inputs[0], Consumed.with(TEXT, TREE));
        switch (topology) {
            case "filter":
                errors(stream).mapValues(StreamsBench::chosen).to(output, Produced.with(TEXT, TREE));
                break;
            case "forward":
                stream.mapValues(StreamsBench::chosen).to(output, Produced.with(TEXT, TREE));
                break;
            case "windowed count":
                windowedCount(errors(stream).groupByKey(Grouped.with(TEXT, TREE)), output);
                break;
            case "windowed count, other key":
                windowedCount(errors(stream).groupBy((key, event) -> event.get("page").textValue(),
                    Grouped.with(TEXT, TREE)), output);
                break;
            case "latest":
                latest(stream.groupByKey(Grouped.with(TEXT, TREE)), output);
                break;
            case "windowed latest":
                windowedLatest(stream.groupByKey(Grouped.with(TEXT, TREE)), output);
                break;
            case "stream-table join":
                stream.join(builder.table(inputs[1], Consumed.with(TEXT, TREE)), StreamsBench::withLevel,
                        Joined.with(TEXT, TREE, TREE))
                    .to(output, Produced.with(TEXT, TREE));
                break;
            case "stream-stream join":
                stream.join(builder.stream(inputs[1], Consumed.with(TEXT, TREE)), StreamsBench::paid,
                        JoinWindows.ofTimeDifferenceAndGrace(WITHIN, WITHIN), StreamJoined.with(TEXT, TREE, TREE))
                    .to(output, Produced.with(TEXT, TREE));
                break;
            default:
                throw new IllegalArgumentException(topology);
        }
    }

    private static KStream<String, JsonNode> errors(KStream<String, JsonNode> events) {
        return events.filter((key, event) -> "ERROR".equals(event.get("type").textValue()));
    }

    private static JsonNode chosen(JsonNode event) {
        ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.set("ID", event.get("id"));
        result.set("PAGE", event.get("page"));
        result.set("AMOUNT", event.get("amount"));
        result.set("SENT", event.get("sent"));
        return result;
    }

    private static void windowedCount(KGroupedStream<String, JsonNode> grouped, String output) {
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
            .count(Materialized.with(TEXT, Serdes.Long()))
            .toStream()
            .mapValues(count -> (JsonNode) JsonNodeFactory.instance.objectNode().put("N", count))
            .to(output, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), TREE));
    }

    private static void latest(KGroupedStream<String, JsonNode> grouped, String output) {
        grouped.aggregate(StreamsBench::nothing, StreamsBench::added, Materialized.with(TEXT, TREE))
            .toStream()
            .to(output, Produced.with(TEXT, TREE));
    }

    private static void windowedLatest(KGroupedStream<String, JsonNode> grouped, String output) {
        grouped.windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE))
            .aggregate(StreamsBench::nothing, StreamsBench::added, Materialized.with(TEXT, TREE))
            .toStream()
            .to(output, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, WINDOW.toMillis()), TREE));
    }

    private static JsonNode nothing() {
        return JsonNodeFactory.instance.objectNode().put("N", 0L).put("SENT", 0L);
    }

    private static JsonNode added(String key, JsonNode event, JsonNode before) {
        long sent = Math.max(before.get("SENT").longValue(), event.get("sent").longValue());
        return JsonNodeFactory.instance.objectNode().put("N", before.get("N").longValue() + 1).put("SENT", sent);
    }

    private static JsonNode withLevel(JsonNode event, JsonNode user) {
        ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.set("ID", event.get("id"));
        result.set("AMOUNT", event.get("amount"));
        result.set("LEVEL", user.get("level"));
        return result;
    }

    private static JsonNode paid(JsonNode order, JsonNode payment) {
        ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.set("AMOUNT", order.get("amount"));
        result.set("PAID", payment.get("paid"));
        return result;
    }
}
