import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;

/**
 * Serves requests (one JSON object per line on standard input) with Kafka's Java clients and tools.
 * Answers are lines on standard output: {"result": ...} or {"error": "..."}.
 */
public final class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);

    /** The first exit code a tool asked for; tools catch Throwable around their exits and would exit again with 1. */
    private static Integer exitCode;
    private static int errorsAtExit;
    private static final ByteArrayOutputStream ERRORS = new ByteArrayOutputStream();

    /** Thrown in place of ending the JVM when a tool asks to exit. */
    private static final class ExitCalled extends RuntimeException {
        ExitCalled(String message) {
            super(message);
        }
    }

    private static void leave(int code, String message) {
        if (exitCode == null) {
            if (message != null) {
                System.err.println(message);
            }
            System.err.flush();
            exitCode = code;
            errorsAtExit = ERRORS.size();
        }
        throw new ExitCalled(message);
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure(Tools::leave);
        Exit.setHaltProcedure(Tools::leave);
        // A tool's shutdown hook must not outlive its call.
        Exit.setShutdownHookAdder((name, runnable) -> { });
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("result", handle(JSON.readTree(line)));
            } catch (Throwable problem) {
                Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
                answer.put("error", cause.toString());
                problem.printStackTrace();
            }
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static JsonNode handle(JsonNode request) throws Exception {
        switch (request.get("op").asText()) {
            case "tool": return tool(request);
            case "write": return write(request);
            case "read": return read(request);
            case "offsets": return offsets(request);
            case "describe_configs": return describeConfigs(request);
            case "describe_cluster": return describeCluster(request);
            case "create_topic": return createTopic(request);
            case "describe_topic": return describeTopic(request);
            case "delete_topic": return deleteTopic(request);
            case "transactions_open": return Transactions.open(request);
            case "transactions_run": return Transactions.run(request);
            case "transactions_close": return Transactions.close(request);
            case "commit": return Transactions.commit(request);
            case "committed": return Transactions.committed(request);
            default: throw new IllegalArgumentException("unknown op " + request.get("op"));
        }
    }

    private static JsonNode tool(JsonNode request) throws Exception {
        List<String> arguments = new ArrayList<>();
        request.get("args").forEach(one -> arguments.add(one.asText()));
        PrintStream realOut = System.out;
        PrintStream realErr = System.err;
        InputStream realIn = System.in;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ERRORS.reset();
        exitCode = null;
        System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(request.get("stdin").asText())));
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(ERRORS, true));
        boolean failed = false;
        try {
            Class.forName(request.get("main").asText())
                .getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException thrown) {
            failed = true;
            if (exitCode == null) {
                thrown.getCause().printStackTrace();
            }
        } finally {
            System.out.flush();
            System.err.flush();
            System.setIn(realIn);
            System.setOut(realOut);
            System.setErr(realErr);
        }
        ObjectNode result = JSON.createObjectNode();
        result.put("code", exitCode != null ? exitCode.intValue() : failed ? 1 : 0);
        result.put("stdout", out.toByteArray());
        byte[] errors = ERRORS.toByteArray();
        result.put("stderr", exitCode == null ? errors : Arrays.copyOf(errors, errorsAtExit));
        return result;
    }

    private static Properties clientProperties(JsonNode request) {
        Properties properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, request.get("bootstrap").asText());
        if (request.has("config")) {
            request.get("config").fields().forEachRemaining(one -> properties.put(one.getKey(), one.getValue().asText()));
        }
        return properties;
    }

    private static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static JsonNode write(JsonNode request) throws Exception {
        ArrayNode written = JSON.createArrayNode();
        for (JsonNode batch : request.get("batches")) {
            Properties properties = clientProperties(request);
            properties.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, batch.get("codec").asText());
            properties.putIfAbsent(ProducerConfig.LINGER_MS_CONFIG, "20");
            properties.putIfAbsent(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, "20000000");
            properties.putIfAbsent(ProducerConfig.MAX_BLOCK_MS_CONFIG, "10000");
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            try (KafkaProducer<byte[], byte[]> producer =
                    new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
                for (JsonNode record : batch.get("records")) {
                    sent.add(producer.send(producerRecord(batch, record)));
                }
                producer.flush();
            }
            ArrayNode offsets = written.addArray();
            for (Future<RecordMetadata> one : sent) {
                offsets.add(one.get().offset());
            }
        }
        return written;
    }

    private static ProducerRecord<byte[], byte[]> producerRecord(JsonNode batch, JsonNode record) {
        JsonNode timestamp = record.get("timestamp");
        ProducerRecord<byte[], byte[]> built = new ProducerRecord<>(
            batch.get("topic").asText(),
            batch.get("partition").asInt(),
            timestamp == null || timestamp.isNull() ? null : Long.valueOf(timestamp.asLong()),
            bytes(record.get("key")),
            bytes(record.get("value")));
        for (JsonNode header : record.get("headers")) {
            built.headers().add(header.get(0).asText(), bytes(header.get(1)));
        }
        return built;
    }

    private static JsonNode read(JsonNode request) {
        ArrayNode results = JSON.createArrayNode();
        Properties properties = clientProperties(request);
        properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            for (JsonNode wanted : request.get("reads")) {
                TopicPartition partition = new TopicPartition(wanted.get("topic").asText(), wanted.get("partition").asInt());
                consumer.assign(List.of(partition));
                consumer.seek(partition, wanted.get("start").asLong());
                ArrayNode records = results.addArray();
                long deadline = System.currentTimeMillis() + 20_000;
                while (records.size() < wanted.get("count").asInt() && System.currentTimeMillis() < deadline) {
                    consumer.poll(POLL).forEach(record -> records.add(toJson(record)));
                }
            }
        }
        return results;
    }

    private static ObjectNode toJson(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("key", record.key());
        node.put("value", record.value());
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return node;
    }

    private static Admin admin(JsonNode request) {
        Properties properties = clientProperties(request);
        properties.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, "10000");
        properties.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, "15000");
        return Admin.create(properties);
    }

    private static OffsetSpec spec(JsonNode node) {
        switch (node.asText()) {
            case "earliest": return OffsetSpec.earliest();
            case "latest": return OffsetSpec.latest();
            case "max_timestamp": return OffsetSpec.maxTimestamp();
            default: return OffsetSpec.forTimestamp(node.asLong());
        }
    }

    private static JsonNode offsets(JsonNode request) throws Exception {
        TopicPartition partition = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        ArrayNode results = JSON.createArrayNode();
        try (Admin admin = admin(request)) {
            for (JsonNode one : request.get("specs")) {
                ListOffsetsResult.ListOffsetsResultInfo info =
                    admin.listOffsets(Map.of(partition, spec(one))).partitionResult(partition).get();
                results.addArray().add(info.offset()).add(info.timestamp());
            }
        }
        return results;
    }

    private static JsonNode describeConfigs(JsonNode request) throws Exception {
        ConfigResource resource = new ConfigResource(
            ConfigResource.Type.valueOf(request.get("type").asText()), request.get("name").asText());
        ObjectNode result = JSON.createObjectNode();
        try (Admin admin = admin(request)) {
            Config config = admin.describeConfigs(List.of(resource), new DescribeConfigsOptions().includeSynonyms(true))
                .all().get().get(resource);
            for (ConfigEntry entry : config.entries()) {
                ObjectNode node = result.putObject(entry.name());
                node.put("value", entry.value());
                node.put("source", entry.source().name());
                node.put("type", entry.type().name());
                node.put("read_only", entry.isReadOnly());
                node.put("sensitive", entry.isSensitive());
                ArrayNode synonyms = node.putArray("synonyms");
                entry.synonyms().forEach(one ->
                    synonyms.addArray().add(one.name()).add(one.value()).add(one.source().name()));
            }
        }
        return result;
    }

    private static JsonNode describeCluster(JsonNode request) throws Exception {
        ObjectNode result = JSON.createObjectNode();
        try (Admin admin = admin(request)) {
            DescribeClusterResult cluster = admin.describeCluster();
            result.put("cluster_id", cluster.clusterId().get());
            result.put("controller", cluster.controller().get().id());
            ArrayNode nodes = result.putArray("nodes");
            cluster.nodes().get().forEach(node -> nodes.addArray().add(node.id()).add(node.host()).add(node.port()));
        }
        return result;
    }

    private static JsonNode createTopic(JsonNode request) throws Exception {
        Map<String, String> configs = new TreeMap<>();
        if (request.has("configs")) {
            request.get("configs").fields().forEachRemaining(one -> configs.put(one.getKey(), one.getValue().asText()));
        }
        String name = request.get("topic").asText();
        NewTopic topic = new NewTopic(name, request.get("partitions").asInt(), (short) 1).configs(configs);
        try (Admin admin = admin(request)) {
            return JSON.createObjectNode().put("id", admin.createTopics(List.of(topic)).topicId(name).get().toString());
        }
    }

    private static JsonNode describeTopic(JsonNode request) throws Exception {
        String name = request.get("topic").asText();
        try (Admin admin = admin(request)) {
            TopicDescription topic = admin.describeTopics(List.of(name)).allTopicNames().get().get(name);
            ObjectNode result = JSON.createObjectNode();
            result.put("id", topic.topicId().toString());
            result.put("partitions", topic.partitions().size());
            return result;
        }
    }

    private static JsonNode deleteTopic(JsonNode request) throws Exception {
        try (Admin admin = admin(request)) {
            admin.deleteTopics(List.of(request.get("topic").asText())).all().get();
        }
        return JSON.nullNode();
    }
}
