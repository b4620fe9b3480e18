import { machineDetailsSchema, machineListSchema, stopMachineBodySchema } from "./machine.ts";
import { empty, json, look, type Route } from "./route.ts";

const MACHINE = "/v1/machines/{machine}";

/** The machines of projects on the node that answers. An admin key sees those of all tenants. */
export const machineRoutes = {
  listMachines: {
    ...look,
    path: "/v1/machines",
    summary: "List the virtual machines of your projects on this node",
    access: "read",
    answer: json(machineListSchema),
  },
  getMachine: {
    ...look,
    path: MACHINE,
    summary: "Get a project's virtual machine, with the end of its console",
    access: "read",
    answer: json(machineDetailsSchema),
  },
  stopMachine: {
    ...empty,
    path: `${MACHINE}/stop`,
    summary: "Stop a project's virtual machine",
    access: "sandboxes",
    body: json(stopMachineBodySchema),
  },
} as const satisfies Record<string, Route>;
