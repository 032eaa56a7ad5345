// Sends pipelined requests to a server of the service reverse, checks each response, prints how many. It speaks the wire
// protocol itself (docs/reference/wire-protocol.md, section 1).
// javac Client.java && java Client HOST PORT [COUNT]
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

public final class Client {
  private static final int REQUEST = 4, RESPONSE = 5, ERROR = 6;
  private static final int HEADER = 12, LONGEST = 16 << 20, IN_FLIGHT = 64, MILLISECONDS = 30_000;

  private static String makeRequest(long number) {
    return "request " + number;
  }

  private static void send(DataOutputStream output, byte[] payload) throws IOException {
    output.writeInt(HEADER + payload.length);
    output.writeInt(REQUEST);
    output.writeInt(payload.length);
    output.write(payload);
  }

  private static byte[] receive(DataInputStream input) throws IOException {
    int size = input.readInt(), id = input.readInt(), length = input.readInt();
    if (length < 0 || length > LONGEST || size != HEADER + length) {
      throw new IOException("a malformed frame of " + Integer.toUnsignedString(size) + " bytes");
    }
    byte[] payload = new byte[length];
    input.readFully(payload);
    if (id == ERROR && length >= 4) {
      String text = new String(payload, 4, length - 4, StandardCharsets.UTF_8).replaceAll("\\p{Cntrl}", "?");
      throw new IOException("refused with code " + ByteBuffer.wrap(payload).getInt() + ": " + text);
    }
    if (id != RESPONSE) throw new IOException("message " + id + " instead of a response");
    return payload;
  }

  private static long ask(String host, int port, long count) throws IOException {
    try (Socket socket = new Socket()) {
      socket.connect(new InetSocketAddress(host, port), MILLISECONDS);
      socket.setTcpNoDelay(true);
      socket.setSoTimeout(MILLISECONDS);
      var output = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream(), 1 << 16));
      var input = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 16));
      long sent = 0;
      for (long answered = 0; answered < count; ++answered) {
        for (; sent < count && sent - answered < IN_FLIGHT; ++sent) {
          send(output, makeRequest(sent).getBytes(StandardCharsets.UTF_8));
        }
        output.flush();
        String response = new String(receive(input), StandardCharsets.UTF_8);
        if (!response.equals(new StringBuilder(makeRequest(answered)).reverse().toString())) {
          throw new IOException("a wrong response to request " + answered);
        }
      }
      return count;
    }
  }

  public static void main(String[] words) {
    if (words.length < 2) {
      System.err.println("usage: java Client HOST PORT [COUNT]");
      System.exit(2);
    }
    try {
      long count = words.length > 2 ? Long.parseLong(words[2]) : 10_000;
      System.out.println(ask(words[0], Integer.parseInt(words[1]), count) + " responses, all right");
    } catch (IOException error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }
}
