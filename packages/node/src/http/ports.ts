import type { Clock } from "@sandpiper/core";
import type {
  AuditEntry,
  CreatedKey,
  CreateKeyBody,
  CreateWebhookBody,
  KeyResource,
  PoolResource,
  SetPoolBody,
  WebhookResource,
} from "@sandpiper/protocol";
import type { Authenticator } from "../auth/principal.ts";
import type { Locator } from "../handoff/locator.ts";
import type { EventLog } from "../records/event-log.ts";
import type { CheckpointService, NodeDirectory } from "../checkpoints/checkpoint-service.ts";
import type { ContainerService } from "../containers/container-service.ts";
import type { SandboxService } from "../sandboxes/sandbox-service-port.ts";
import type { RequestContext } from "./serve-operation.ts";

type Eventually<T> = T | Promise<T>;

interface KeyAdmin {
  create(body: CreateKeyBody): Eventually<CreatedKey>;
  list(): Eventually<readonly KeyResource[]>;
  /** Throws `not_found`. */
  revoke(id: string): Eventually<unknown>;
}

interface PoolAdmin {
  list(): Eventually<readonly PoolResource[]>;
  set(body: SetPoolBody): Eventually<PoolResource>;
}

interface WebhookAdmin {
  create(body: CreateWebhookBody): Eventually<WebhookResource & { readonly secret: string }>;
  list(): Eventually<readonly WebhookResource[]>;
  /** Throws `not_found`. */
  remove(id: string): Eventually<unknown>;
}

interface AuditLog {
  add(entry: Omit<AuditEntry, "id" | "at">): unknown;
  list(query: { readonly after: number; readonly limit: number }): Eventually<readonly AuditEntry[]>;
}

interface HttpMetrics {
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
  observeRequest(request: { readonly operation: string; readonly status: number; readonly seconds: number }): void;
  observeExec(provider: string, seconds: number): void;
}

/** As pino has them. */
interface HttpLogger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Something else than REST at a path of its own. */
interface Endpoint {
  serve(request: Request, context: RequestContext): Promise<Response>;
}

/** What the REST interface stands on. */
export interface HttpDependencies {
  readonly service: SandboxService;
  readonly locator: Locator;
  readonly checkpoints: CheckpointService;
  readonly containers: ContainerService;
  readonly nodes: NodeDirectory;
  readonly authenticator: Authenticator;
  readonly keys: KeyAdmin;
  readonly events: EventLog;
  readonly pools: PoolAdmin;
  readonly webhooks: WebhookAdmin;
  readonly audit: AuditLog;
  readonly metrics: HttpMetrics;
  /** Serves /mcp; nothing is there unless given. */
  readonly mcp?: Endpoint | undefined;
  readonly version: string;
  readonly logger: HttpLogger;
  /** Health goes on being answered, and says so; nothing else is begun. */
  readonly isStopping: () => boolean;
  /** What it has goes to others, and it makes nothing new. */
  readonly isDraining?: (() => boolean) | undefined;
  /** Of bodies that are read as a whole; files and archives are bounded by the sandbox's disk. */
  readonly bodyLimitBytes: number;
  /** Web pages of these origins may call; none unless given. */
  readonly corsOrigins: readonly string[];
  readonly randomUuid?: (() => string) | undefined;
  readonly clock?: Clock | undefined;
}
