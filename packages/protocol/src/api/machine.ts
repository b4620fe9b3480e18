import { z } from "zod";
import { sandboxIdSchema } from "../sandbox-id.ts";
import { instantSchema } from "./names.ts";

/** The virtual machine that the sandboxes of a project share. It keeps its id across restarts. */
const machineResourceSchema = z
  .strictObject({
    id: z.string(),
    project: z.string(),
    provider: z.string(),
    state: z.enum(["starting", "ready", "error", "stopped"]),
    sandboxes: z.array(sandboxIdSchema),
    memoryMib: z.int(),
    vcpuCount: z.number(),
    diskMib: z.int(),
    /** Null unless it is ready. */
    startedAt: instantSchema.nullable(),
    /** Why it failed; null in all states but `error`. */
    error: z.strictObject({ reason: z.string(), message: z.string() }).nullable(),
  })
  .meta({ id: "Machine" });

export const machineListSchema = z.strictObject({ items: z.array(machineResourceSchema) }).meta({ id: "MachineList" });

export const machineDetailsSchema = machineResourceSchema
  .extend({
    /** The end of its kernel's console; empty if it does not run. */
    console: z.string(),
  })
  .meta({ id: "MachineDetails" });

export const stopMachineBodySchema = z
  .strictObject({
    /** Stops it even if sandboxes use it; they fail. */
    force: z.boolean(),
  })
  .partial()
  .meta({ id: "StopMachine" });

export type MachineResource = z.infer<typeof machineResourceSchema>;
export type MachineDetails = z.infer<typeof machineDetailsSchema>;
export type StopMachineBody = z.infer<typeof stopMachineBodySchema>;
