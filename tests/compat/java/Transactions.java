import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactional producers that stay open between requests, and commits with their metadata; called by Tools. */
final class Transactions {
    private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();

    private Transactions() { }

    /** Opens a producer under a name of the test's own: two producers may share a transactional id. */
    static JsonNode open(JsonNode request) {
        Properties properties = new Properties();
        properties.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, request.get("bootstrap").asText());
        properties.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, request.get("transactional_id").asText());
        properties.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, request.path("timeout_ms").asText("20000"));
        properties.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, "30000");
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        PRODUCERS.put(request.get("name").asText(), producer);
        producer.initTransactions();
        return JsonNodeFactory.instance.nullNode();
    }

    /** One transaction: values to a partition, offsets of a group if asked for, then "commit", "abort" or "leave open". */
    static JsonNode run(JsonNode request) throws Exception {
        KafkaProducer<byte[], byte[]> producer = PRODUCERS.get(request.get("name").asText());
        producer.beginTransaction();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode value : request.get("values")) {
            sent.add(producer.send(new ProducerRecord<>(
                request.get("topic").asText(), request.path("partition").asInt(0), null,
                value.asText().getBytes(StandardCharsets.UTF_8))));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
        if (request.has("offsets")) {
            producer.sendOffsetsToTransaction(offsets(request), new ConsumerGroupMetadata(request.get("group").asText()));
        }
        switch (request.get("end").asText()) {
            case "commit": producer.commitTransaction(); break;
            case "abort": producer.abortTransaction(); break;
            default: break;
        }
        return JsonNodeFactory.instance.nullNode();
    }

    static JsonNode close(JsonNode request) {
        PRODUCERS.remove(request.get("name").asText()).close(Duration.ZERO);
        return JsonNodeFactory.instance.nullNode();
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode request) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        request.get("offsets").fields().forEachRemaining(one -> offsets.put(
            new TopicPartition(request.get("topic").asText(), Integer.parseInt(one.getKey())),
            new OffsetAndMetadata(one.getValue().get(0).asLong(), one.getValue().get(1).asText())));
        return offsets;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(JsonNode request) {
        Properties properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, request.get("bootstrap").asText());
        properties.put(ConsumerConfig.GROUP_ID_CONFIG, request.get("group").asText());
        properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static JsonNode commit(JsonNode request) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request)) {
            consumer.commitSync(offsets(request));
        }
        return JsonNodeFactory.instance.nullNode();
    }

    static JsonNode committed(JsonNode request) {
        ObjectNode result = JsonNodeFactory.instance.objectNode();
        TopicPartition partition = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request)) {
            OffsetAndMetadata found = consumer.committed(java.util.Set.of(partition)).get(partition);
            if (found != null) {
                result.put("offset", found.offset()).put("metadata", found.metadata());
            }
        }
        return result;
    }
}
