export { readDashboard, readRules } from '../../support/deploy-files.ts';
