import { z } from "zod";
import { instantSchema } from "./names.ts";

/** Bounds the requests of a sandbox, each of which the node compares with all of its secrets. */
const MAX_SECRETS_OF_SANDBOX = 32;
const MAX_HOSTS = 32;
const MAX_VALUE_CHARS = 16 * 1024;

/** Headers that decide where a request ends, or which server answers it. */
const FRAMING =
  /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*|http2-settings)$/i;

const LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?";
const HOST = new RegExp(`^(?:\\*\\.)?(?:${LABEL}\\.)*(?=[a-z0-9-]*[a-z])${LABEL}(?::[1-9][0-9]{0,4})?$`);

export const secretNameSchema = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/);

/** A host name, or `*.` before a name for its sub-domains, and a port; the default port is that of HTTPS. */
const secretHostSchema = z
  .string()
  .max(260)
  .regex(HOST)
  .refine((host) => !host.startsWith("*.") || host.split(".").length > 2, {
    error: "a wildcard needs a domain with a dot, such as *.example.com",
  });

/** Sets a header of each request; `{}` in the format stands for the value. */
const headerInjectionSchema = z.strictObject({
  header: z
    .string()
    .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/)
    .refine((name) => !FRAMING.test(name), { error: "this header cannot carry a secret" }),
  format: z
    .string()
    .max(1024)
    .regex(/^[\x20-\x7e]*\{\}[\x20-\x7e]*$/),
});

/** Replaces the placeholder where the code inside wrote it. */
const placeholderInjectionSchema = z.strictObject({
  replaceIn: z
    .array(z.enum(["header", "query", "path"]))
    .min(1)
    .max(3),
});

const variableSchema = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/);

const fields = {
  hosts: z.array(secretHostSchema).min(1).max(MAX_HOSTS),
  inject: z.union([headerInjectionSchema, placeholderInjectionSchema]),
  /** The variable that holds the placeholder inside, unless the sandbox names another; null for none. */
  env: variableSchema.nullable(),
  /** Also injects the value into unencrypted requests, to port 80 or the given port. */
  allowInsecure: z.boolean(),
};

/** Printable characters, as a header can carry them. */
const valueSchema = z
  .string()
  .min(1)
  .max(MAX_VALUE_CHARS)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, {
    error: "must be printable ASCII without spaces at the ends",
  });

export const createSecretBodySchema = z
  .strictObject({ name: secretNameSchema, value: valueSchema, ...fields })
  .partial({ inject: true, env: true, allowInsecure: true })
  .meta({ id: "CreateSecret" });

export const updateSecretBodySchema = z
  .strictObject({ value: valueSchema, ...fields })
  .partial()
  .refine((body) => body.value !== undefined || Object.keys(body).every((field) => field === "env"), {
    path: ["value"],
    error: "is required to change hosts, inject or allowInsecure: otherwise a caller could send it to another host",
  })
  .meta({ id: "UpdateSecret" });

/** Never contains the value. */
export const secretResourceSchema = z
  .strictObject({
    name: secretNameSchema,
    ...fields,
    createdAt: instantSchema,
    /** When its value was last set. */
    rotatedAt: instantSchema,
  })
  .meta({ id: "Secret" });

export const secretListSchema = z.strictObject({ items: z.array(secretResourceSchema) }).meta({ id: "SecretList" });

const useSchema = z.strictObject({ name: secretNameSchema, env: variableSchema.nullable() });

/** The secrets that a sandbox uses, by name, or also with the variable for the placeholder. */
export const secretUsesBodySchema = z
  .array(z.union([secretNameSchema, useSchema.partial({ env: true })]))
  .max(MAX_SECRETS_OF_SANDBOX)
  .refine((uses) => new Set(uses.map((use) => (typeof use === "string" ? use : use.name))).size === uses.length, {
    error: "names a secret twice",
  });

/** With the placeholder that the code inside sees instead of the value. */
export const secretUseSchema = useSchema.extend({ placeholder: z.string() });

export type SecretInjection = z.infer<typeof fields.inject>;
export type CreateSecretBody = z.infer<typeof createSecretBodySchema>;
export type UpdateSecretBody = z.infer<typeof updateSecretBodySchema>;
export type SecretResource = z.infer<typeof secretResourceSchema>;
export type SecretUsesBody = z.infer<typeof secretUsesBodySchema>;
export type SecretUse = z.infer<typeof secretUseSchema>;
