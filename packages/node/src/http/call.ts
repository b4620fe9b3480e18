import type { HttpBindings } from "@hono/node-server";
import type { OperationId, routes, SandboxError } from "@sandpiper/protocol";
import type { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { HttpDependencies } from "./ports.ts";

type Routes = typeof routes;

type QueryOf<Id extends OperationId> = Routes[Id] extends { readonly query: infer Query extends z.ZodType }
  ? z.output<Query>
  : undefined;

type BodyOf<Id extends OperationId> = Routes[Id] extends {
  readonly body: { readonly kind: "json"; readonly schema: infer Body extends z.ZodType };
}
  ? z.output<Body>
  : undefined;

/** JSON is given as a value; everything else as a response; nothing for a status without a body. */
type AnswerOf<Id extends OperationId> = Routes[Id] extends {
  readonly answer: { readonly kind: "json"; readonly schema: infer Answer extends z.ZodType };
}
  ? z.input<Answer> | Response
  : Routes[Id] extends { readonly answer: object }
    ? Response
    : undefined;

/** Those that the operation's path has; the others are empty. */
export interface PathParams {
  readonly id: string;
  readonly process: string;
  readonly checkpoint: string;
  readonly key: string;
  readonly webhook: string;
  readonly project: string;
  readonly cache: string;
}

/** What the runtime gives besides the request; nothing when there is no server, as in tests. */
export type Bindings = Partial<HttpBindings>;

/** One request, checked: who asks may ask this, and query and body fit the operation's schemas. */
export interface Call<Id extends OperationId = OperationId> {
  readonly operation: Id;
  /** Its `signal` says that the caller has gone. */
  readonly request: Request;
  readonly bindings: Bindings;
  readonly requestId: string;
  readonly principal: Routes[Id]["access"] extends "anyone" ? undefined : Principal;
  readonly params: PathParams;
  readonly query: QueryOf<Id>;
  readonly body: BodyOf<Id>;
  /** Of every answer to it. */
  readonly headers: Readonly<Record<string, string>>;
  readonly deps: HttpDependencies;
  /** Of the sandbox of the path, where no node has it and the operation only looks. */
  readonly saved: SavedSandbox | undefined;
  /** The sandbox of the path, when it is ready to be used. */
  open(): LiveSandbox;
  /** For answers that take long: told when who asked is not let in any more. */
  watchCredential(ended: (error: SandboxError) => void): Disposable;
}

type Handler<Id extends OperationId> = (call: Call<Id>) => AnswerOf<Id> | Promise<AnswerOf<Id>>;

export type Handlers<Id extends OperationId = OperationId> = { readonly [Each in Id]: Handler<Each> };

/** A handler of whatever operation, as the one place that calls them sees it. */
export type AnyHandler = (call: Call) => unknown;
