import { describeQemu } from "./testing/describe-qemu.ts";

await describeQemu("qemu");
