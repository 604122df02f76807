import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.UUID;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Announces changes to evalgate, and sends them again until they are taken. Needs Java 11 and no library.
 *
 *     EVALGATE_ADMIN_URL=http://127.0.0.1:8081 CHANGES_SECRET=whsec_... java Announce.java '[{"evaluation": "...", "workspace": "..."}]'
 */
public class Announce {
    private static final String URL = System.getenv().getOrDefault("EVALGATE_ADMIN_URL", "http://127.0.0.1:8081");
    private static final byte[] SECRET =
        Base64.getDecoder().decode(System.getenv("CHANGES_SECRET").replaceFirst("^whsec_", ""));
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    public static void main(String[] args) throws Exception {
        announce(args[0]);
    }

    /** Returns once the changes, an array of JSON, are in force in every gateway. Throws for a fault that another try does not mend. */
    static void announce(String changes) throws Exception {
        String body = "{\"changes\": " + changes + "}";
        String id = "msg_" + UUID.randomUUID();
        for (long delayMs = 1000; ; delayMs = Math.min(60_000, 2 * delayMs)) {
            try {
                HttpResponse<String> response = send(id, body);
                if (response.statusCode() == 200) return;
                if (response.statusCode() < 500) {
                    throw new IllegalStateException(response.statusCode() + ": " + response.body());
                }
            } catch (IOException error) {
                // Not known whether it was taken: the same again, with the same id, does no harm.
            }
            Thread.sleep(delayMs);
        }
    }

    /** Signed as Standard Webhooks has it. */
    private static HttpResponse<String> send(String id, String body) throws Exception {
        String at = String.valueOf(Instant.now().getEpochSecond());
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(SECRET, "HmacSHA256"));
        byte[] signature = mac.doFinal((id + "." + at + "." + body).getBytes(StandardCharsets.UTF_8));
        HttpRequest request = HttpRequest.newBuilder(URI.create(URL + "/api/changes"))
            .timeout(Duration.ofSeconds(5))
            .header("Content-Type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", at)
            .header("webhook-signature", "v1," + Base64.getEncoder().encodeToString(signature))
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        return CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
    }
}
