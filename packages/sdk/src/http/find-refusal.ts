import { SandboxError } from "@sandpiper/protocol";
import type { HttpTransport } from "./http-transport.ts";

/** A WebSocket does not say why it was refused, but a request with the same credential does. */
export async function findRefusal(http: HttpTransport): Promise<SandboxError | undefined> {
  try {
    await http.json("listEvents", { query: { limit: 1 }, isRepeatable: false });
    return undefined;
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    return error.code === "unauthenticated" ? error : undefined;
  }
}
