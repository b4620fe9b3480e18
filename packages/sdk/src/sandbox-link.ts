import type { SandboxId } from "@sandpiper/protocol";
import type { HttpTransport } from "./http/http-transport.ts";
import type { Connection } from "./socket/connection.ts";

/** How one sandbox is reached. */
export interface SandboxLink {
  readonly id: SandboxId;
  readonly http: HttpTransport;
  readonly connection: Connection;
  /** Processes that are over for their caller, while the node has yet to hear of it. */
  readonly forgotten: Set<string>;
  /** A stream found that it was set back to an earlier checkpoint. */
  readonly onRollback: () => void;
}
