import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies a topic partition by partition, each value in upper case, exactly once: the records and the offsets which they
 * stand for are one transaction. Arguments: bootstrap, input, output, group, transactional id. An error that aborts a
 * transaction makes it go back to the committed offsets, one that ends the producer ends the program.
 */
public final class CopyJob {
    private final String output;
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;

    private CopyJob(String bootstrap, String input, String output, String group, String transactionalId) {
        this.output = output;
        Properties reading = new Properties();
        reading.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        reading.put(ConsumerConfig.GROUP_ID_CONFIG, group);
        reading.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        reading.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        reading.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        reading.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, "2000");
        reading.put(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG, "300");
        reading.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, "50");
        reading.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, "100");
        consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
        Properties writing = new Properties();
        writing.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        writing.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactionalId);
        writing.put(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, "20000");
        writing.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, "30000");
        producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer());
        consumer.subscribe(List.of(input));
    }

    public static void main(String[] arguments) {
        CopyJob job = new CopyJob(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
        try {
            job.producer.initTransactions();
            System.out.println("ready");
            while (true) {
                job.copy(job.consumer.poll(Duration.ofMillis(100)));
            }
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
            System.out.flush();
            Runtime.getRuntime().halt(3);
        }
    }

    private void copy(ConsumerRecords<String, String> records) {
        if (records.isEmpty()) {
            return;
        }
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(new ProducerRecord<>(output, record.partition(), record.key(), record.value().toUpperCase()));
                offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
        } catch (KafkaException problem) {
            System.out.println("aborting: " + problem);
            producer.abortTransaction();
            goBack();
        }
    }

    /** To the committed offsets, as what was polled since then is not copied. */
    private void goBack() {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata offset = committed.get(partition);
            if (offset == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, offset.offset());
            }
        }
    }
}
