import { z } from "zod";
import { instantSchema } from "./names.ts";

/** A TCP port inside a sandbox. */
export const portNumberSchema = z.int().min(1).max(65_535);

const HOUR_MS = 3_600_000;
const MAX_LINK_MS = 30 * 24 * HOUR_MS;

/** How the world reaches one port of a sandbox. */
export const previewResourceSchema = z
  .strictObject({
    port: portNumberSchema,
    /** Without a credential, it answers only if the preview is public. */
    url: z.url(),
    /** Whether anyone who knows the URL may use it. */
    isPublic: z.boolean(),
    /** For the header X-Sandpiper-Traffic-Token, for all ports of the sandbox; null for a read-only key. */
    trafficToken: z.string().nullable(),
  })
  .meta({ id: "Preview" });

export const setPreviewBodySchema = z
  .strictObject({ isPublic: z.boolean().describe("Whether anyone who knows the URL may use the preview.") })
  .meta({ id: "SetPreview" });

/** A port on which a program in the sandbox listens. */
const portResourceSchema = z
  .strictObject({
    port: portNumberSchema,
    /** The most open address on which it listens, such as 127.0.0.1 or ::. */
    address: z.string(),
    /** Null if the process is not known. */
    pid: z.int().nullable(),
    program: z.string().nullable(),
    url: z.url(),
    isPublic: z.boolean(),
  })
  .meta({ id: "Port" });

export const portListSchema = z.strictObject({ items: z.array(portResourceSchema) }).meta({ id: "PortList" });

export const createLinkBodySchema = z
  .strictObject({
    port: portNumberSchema,
    /** An hour by default, and at most 30 days. */
    expiresInMs: z.int().min(1000).max(MAX_LINK_MS).default(HOUR_MS),
    /** The page to open, with its query. */
    path: z
      .string()
      .max(2048)
      .regex(/^\/[\x21-\x7e]*$/)
      .default("/"),
  })
  .meta({ id: "CreateLink" });

/** A URL that opens a private preview without another credential until it expires. */
export const linkResourceSchema = z
  .strictObject({ port: portNumberSchema, url: z.url(), expiresAt: instantSchema })
  .meta({ id: "Link" });

export type PreviewResource = z.infer<typeof previewResourceSchema>;
export type SetPreviewBody = z.input<typeof setPreviewBodySchema>;
export type PortResource = z.infer<typeof portResourceSchema>;
export type NewLink = z.output<typeof createLinkBodySchema>;
export type CreateLinkBody = z.input<typeof createLinkBodySchema>;
export type LinkResource = z.infer<typeof linkResourceSchema>;
