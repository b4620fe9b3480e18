import type { SandboxId } from "@sandpiper/protocol";
import type { HttpTransport } from "./http/http-transport.ts";
import type { Connection } from "./socket/connection.ts";

/** How one sandbox is reached. */
export interface SandboxLink {
  readonly id: SandboxId;
  readonly http: HttpTransport;
  readonly connection: Connection;
}
