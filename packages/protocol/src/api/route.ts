import type { z } from "zod";

/** The content of a body: JSON, raw bytes, or server-sent events. */
export type Content =
  | { readonly kind: "json"; readonly schema: z.ZodType }
  | { readonly kind: "bytes" }
  | { readonly kind: "text" }
  | { readonly kind: "events"; readonly schema: z.ZodType };

/**
 * Who may call it. `anyone`: no credential. `sandbox`: a key of the sandbox's tenant, or the sandbox's own token.
 * The others are scopes of keys; `admin` may do everything.
 */
export type Access = "anyone" | "sandbox" | "read" | "sandboxes" | "admin" | "metrics";

/** One operation of the REST API, for the handlers' checks and the OpenAPI document. */
export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Parameters are written as in `/v1/sandboxes/{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly access: Access;
  /** Changes nothing, so a read-only key may call it. */
  readonly readOnly: boolean;
  readonly query?: z.ZodObject | undefined;
  readonly body?: Content | undefined;
  readonly status: 200 | 201 | 204;
  readonly answer?: Content | undefined;
}

/** Keeps the schema's type, so that handlers and clients are checked against it. */
export function json<Schema extends z.ZodType>(schema: Schema) {
  return { kind: "json", schema } as const;
}

export const bytes = { kind: "bytes" } as const;

/** The path prefix of one sandbox. */
export const SANDBOX = "/v1/sandboxes/{id}";

export const look = { method: "GET", readOnly: true, status: 200 } as const;
export const change = { method: "POST", readOnly: false, status: 200 } as const;
export const make = { method: "POST", readOnly: false, status: 201 } as const;
export const empty = { method: "POST", readOnly: false, status: 204 } as const;
export const remove = { method: "DELETE", readOnly: false, status: 204 } as const;
