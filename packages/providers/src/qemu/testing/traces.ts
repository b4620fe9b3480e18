export { crashMachine, machineProcesses, tracesOf } from "../../host/testing/machine-traces.ts";
