import type { SandboxId } from "@sandpiper/protocol";
import type { HttpTransport } from "./http/http-transport.ts";
import type { Connection } from "./socket/connection.ts";

/** The connections of one sandbox. */
export interface SandboxLink {
  readonly id: SandboxId;
  readonly http: HttpTransport;
  readonly connection: Connection;
  /** Ended processes that the node has yet to forget. */
  readonly forgotten: Set<string>;
  /** Called when a stream detects a rollback. */
  readonly onRollback: () => void;
}
