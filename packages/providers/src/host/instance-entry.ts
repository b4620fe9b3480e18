import { type InstanceSpec, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { ProcessOwner } from "./process-owner.ts";

/** What a provider records about an instance before it starts. */
export interface InstanceEntry {
  readonly spec: InstanceSpec;
  readonly createdAt: string;
  readonly owner: ProcessOwner;
}

/** Checks what the provider relies on; this or another version of Sandpiper wrote the record. */
export function parseInstanceEntry(id: SandboxId, text: string): InstanceEntry {
  const damaged = (why: string, cause?: unknown) =>
    new SandboxError("instance_record_damaged", { message: `the record of instance ${id} is unusable: ${why}`, cause });
  let value: Partial<InstanceEntry> | null;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw damaged("it is not JSON", error);
  }
  if (value?.spec?.id !== id) throw damaged("it belongs to another instance");
  if (Number.isNaN(Date.parse(String(value.createdAt)))) throw damaged("it has no date of creation");
  const { owner } = value as InstanceEntry;
  if (!Number.isInteger(owner?.pid) || !Number.isInteger(owner?.startTicks) || typeof owner?.bootId !== "string") {
    throw damaged("it names no owner");
  }
  return value as InstanceEntry;
}
