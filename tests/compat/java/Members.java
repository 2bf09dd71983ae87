import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of consumer groups by Kafka's Java consumer, one thread each. Commands and events: members/wire.py. */
public final class Members {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, Class<?>> ASSIGNORS = Map.of(
        "range", RangeAssignor.class,
        "roundrobin", RoundRobinAssignor.class,
        "sticky", StickyAssignor.class,
        "cooperative-sticky", CooperativeStickyAssignor.class);

    public static void main(String[] arguments) throws Exception {
        Map<String, Member> members = new HashMap<>();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode command = JSON.readTree(line);
            String name = command.get("member").asText();
            if (command.get("op").asText().equals("join")) {
                Member member = new Member(command);
                members.put(name, member);
                new Thread(member).start();
            } else {
                members.remove(name).leaving = true;
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static final class Member implements Runnable, ConsumerRebalanceListener {
        private final JsonNode join;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final Set<Integer> owned = new TreeSet<>();
        volatile boolean leaving;

        Member(JsonNode join) {
            this.join = join;
            Properties properties = new Properties();
            properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, join.get("bootstrap").asText());
            properties.put(ConsumerConfig.GROUP_ID_CONFIG, join.get("group").asText());
            properties.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG,
                List.of(ASSIGNORS.get(join.get("assignor").asText())));
            properties.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, join.get("session_ms").asText());
            properties.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, "300");
            properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
            properties.put(ConsumerConfig.AUTO_COMMIT_INTERVAL_MS_CONFIG, "300");
            properties.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, join.get("isolation").asText());
            properties.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, "200");
            if (!join.get("instance").isNull()) {
                properties.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, join.get("instance").asText());
            }
            consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        @Override
        public void run() {
            try (consumer) {
                consumer.subscribe(List.of(join.get("topic").asText()), this);
                while (!leaving) {
                    report(consumer.poll(Duration.ofMillis(100)));
                }
            } catch (Exception problem) {
                print(event("failed").put("error", problem.toString()));
                return;
            }
            print(event("left"));
        }

        private void report(ConsumerRecords<byte[], byte[]> records) {
            if (records.isEmpty()) {
                return;
            }
            ObjectNode event = event("records");
            ObjectNode offsets = event.putObject("offsets");
            for (TopicPartition partition : records.partitions()) {
                ArrayNode read = offsets.putArray(String.valueOf(partition.partition()));
                for (ConsumerRecord<byte[], byte[]> record : records.records(partition)) {
                    read.add(record.offset());
                }
            }
            print(event);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(one -> owned.add(one.partition()));
            reportOwned(consumer.groupMetadata().generationId());
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(one -> owned.remove(one.partition()));
            reportOwned(-1);
        }

        private void reportOwned(int generation) {
            ObjectNode event = event("owned").put("generation", generation);
            ArrayNode partitions = event.putArray("partitions");
            owned.forEach(partitions::add);
            print(event);
        }

        private ObjectNode event(String name) {
            ObjectNode event = JSON.createObjectNode();
            return event.put("event", name).put("member", join.get("member").asText()).put("time", System.currentTimeMillis());
        }
    }

    private static synchronized void print(ObjectNode event) {
        System.out.println(event);
        System.out.flush();
    }
}
