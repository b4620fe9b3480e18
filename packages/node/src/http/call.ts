import type { OperationId, routes, SandboxError } from "@sandpiper/protocol";
import type { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import type { Bindings } from "../forward/request-forwarder.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { BodyMemory } from "./body-limits.ts";
import type { HttpDependencies } from "./http-dependencies.ts";

type Routes = typeof routes;

type QueryOf<Id extends OperationId> = Routes[Id] extends { readonly query: infer Query extends z.ZodType }
  ? z.output<Query>
  : undefined;

type BodyOf<Id extends OperationId> = Routes[Id] extends {
  readonly body: { readonly kind: "json"; readonly schema: infer Body extends z.ZodType };
}
  ? z.output<Body>
  : undefined;

/** Handlers return JSON as a value, and other bodies as a response. The answer to a status without a body is ignored. */
type AnswerOf<Id extends OperationId> = Routes[Id] extends {
  readonly answer: { readonly kind: "json"; readonly schema: infer Answer extends z.ZodType };
}
  ? z.input<Answer> | Response
  : Routes[Id] extends { readonly answer: object }
    ? Response
    : unknown;

/** Parameters that the operation's path does not have are empty. */
export interface PathParams {
  readonly id: string;
  readonly process: string;
  readonly checkpoint: string;
  readonly key: string;
  readonly webhook: string;
  readonly project: string;
  readonly cache: string;
  readonly volume: string;
  readonly machine: string;
  readonly tenant: string;
  /** 0 if the path has none. */
  readonly port: number;
  readonly request: string;
  readonly secret: string;
}

export type { Bindings };

/** One checked request: the caller has access, and query and body fit the operation's schemas. */
export interface Call<Id extends OperationId = OperationId> {
  readonly operation: Id;
  /** Its `signal` aborts when the caller has gone. */
  readonly request: Request;
  readonly bindings: Bindings;
  readonly requestId: string;
  readonly principal: Routes[Id]["access"] extends "anyone" ? undefined : Principal;
  readonly params: PathParams;
  readonly query: QueryOf<Id>;
  readonly body: BodyOf<Id>;
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>>;
  readonly deps: HttpDependencies;
  /** For a body that the handler reads as a whole. */
  readonly memory: BodyMemory;
  /** Whether another node forwarded the request. */
  readonly isForwarded: boolean;
  /** The stored state of the sandbox, if no reachable node owns it and the operation only reads. */
  readonly saved: StoredSandbox | undefined;
  /** The sandbox of the path; throws if it is not running. */
  open(): LiveSandbox;
  /** Counts bytes of the body towards the caller's quotas until the request is answered. Throws `quota_exceeded`. */
  countBody(sizeBytes: number): void;
  /** For long answers: calls back when the caller's credential is revoked or expires. */
  watchCredential(ended: (error: SandboxError) => void): Disposable;
}

interface StoredSandbox extends SavedSandbox {
  /** The id of the unreachable node that owns it; null at rest. */
  readonly owner: string | null;
}

type Handler<Id extends OperationId> = (call: Call<Id>) => AnswerOf<Id> | Promise<AnswerOf<Id>>;

export type Handlers<Id extends OperationId = OperationId> = { readonly [Each in Id]: Handler<Each> };

/** A handler of any operation. */
export type AnyHandler = (call: Call) => unknown;
