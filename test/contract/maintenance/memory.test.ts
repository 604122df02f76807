import { LocalMaintenance, MaintenanceState } from '../../../src/cache/maintenance.ts';
import { maintenanceContract } from './cases.ts';

maintenanceContract((clock) => new LocalMaintenance(new MaintenanceState(clock)));
