import { type SecretResource, secretResourceSchema } from "@sandpiper/protocol";
import { z } from "zod";

/** A secret as it is stored, encrypted: with its value. */
const secretRecordSchema = secretResourceSchema.extend({ value: z.string() });

/** All secrets of a tenant. */
export const secretsDocumentSchema = z.object({
  /** Counts changes: a node refuses a version below one that it has seen. */
  revision: z.int(),
  tenant: z.string(),
  secrets: z.array(secretRecordSchema),
});

export type SecretRecord = z.infer<typeof secretRecordSchema>;
export type SecretsDocument = z.infer<typeof secretsDocumentSchema>;

/** The secret without its value. */
export function secretResource({ value: _, ...resource }: SecretRecord): SecretResource {
  return resource;
}
