// Models on the nodes' disks, asked for again when a download or a removal may have changed them.
import { json } from "../lib/api";
import type { DiskReport } from "./rows";

class Disk {
  report = $state.raw<DiskReport | undefined>(undefined);
  refusal = $state("");
  isAsking = $state(false);
  private isWanted = false;

  async refresh(): Promise<void> {
    // An answer that began before the change does not show it.
    if (this.isAsking) {
      this.isWanted = true;
      return;
    }
    this.isAsking = true;
    try {
      this.report = await json<DiskReport>("GET", "/cluster/disk");
      this.refusal = "";
    } catch (error) {
      this.refusal = (error as Error).message;
    }
    this.isAsking = false;
    if (this.isWanted) {
      this.isWanted = false;
      await this.refresh();
    }
  }
}

export const disk = new Disk();
