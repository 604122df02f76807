/** Who sells what to whom in the sample's calls. All invented. */

import { parseNames } from './people.ts';

/** A workspace's own company and what it sells. */
export interface Vendor {
  readonly name: string;
  readonly domain: string;
  readonly product: string;
  readonly unit: string;
  readonly unitPrice: number;
  readonly modules: readonly string[];
  readonly systems: readonly string[];
  readonly rivals: readonly string[];
  readonly pains: readonly string[];
  readonly outcomes: readonly string[];
}

export const VENDORS: readonly Vendor[] = [
  {
    name: 'Northbeam Analytics',
    domain: 'northbeam.example',
    product: 'Northbeam',
    unit: 'seats',
    unitPrice: 68,
    modules: ['forecast boards', 'pipeline alerts', 'the metrics layer', 'scheduled reports', 'the data catalogue'],
    systems: ['Salesforce', 'Snowflake', 'HubSpot', 'BigQuery', 'NetSuite', 'Google Sheets'],
    rivals: ['Chartwell', 'Plotline', 'Quantboard'],
    pains: [
      'three teams report three different revenue numbers',
      'the Monday forecast takes two analysts all of Friday',
      'nobody trusts the pipeline dashboard any more',
      'every board pack is rebuilt by hand in spreadsheets',
    ],
    outcomes: [
      'one agreed revenue number',
      'a forecast within five percent',
      'board packs in an hour instead of a week',
    ],
  },
  {
    name: 'Helio Freight Systems',
    domain: 'heliofreight.example',
    product: 'Helio Dispatch',
    unit: 'vehicles',
    unitPrice: 41,
    modules: ['live routing', 'proof of delivery', 'the carrier portal', 'dock scheduling', 'fuel tracking'],
    systems: ['SAP', 'Oracle TMS', 'the telematics boxes', 'Dynamics', 'the warehouse system', 'the driver app'],
    rivals: ['Routewise', 'Freightpath', 'Loadstone'],
    pains: [
      'one load in eight arrives late and we hear it from the customer first',
      'dispatchers replan the whole day by phone before nine',
      'detention charges doubled since last spring',
      'we drive about a fifth of our miles empty',
    ],
    outcomes: ['late loads under three percent', 'eleven percent fewer empty miles', 'detention charges cut in half'],
  },
  {
    name: 'Castella Security',
    domain: 'castella.example',
    product: 'Castella Guard',
    unit: 'endpoints',
    unitPrice: 9,
    modules: ['managed detection', 'identity posture', 'the audit workspace', 'phishing drills', 'device control'],
    systems: ['Okta', 'Entra ID', 'Jamf', 'Intune', 'the SIEM', 'ServiceNow'],
    rivals: ['Bastionic', 'Sentrium', 'Wardline'],
    pains: [
      'two people watch four thousand alerts a week',
      'the last audit found sixty laptops that nobody could place',
      'our insurer wants proof of response times by the renewal',
      'the service desk resets forty passwords a day',
    ],
    outcomes: ['a response time under thirty minutes', 'every laptop accounted for', 'an audit finished in four days'],
  },
  {
    name: 'Meridian Payroll',
    domain: 'meridianpay.example',
    product: 'Meridian',
    unit: 'employees',
    unitPrice: 14,
    modules: ['gross-to-net', 'time capture', 'the employee app', 'statutory filing', 'expense runs'],
    systems: ['Workday', 'BambooHR', 'Xero', 'the rota tool', 'our bank file', 'QuickBooks'],
    rivals: ['Salarion', 'Tallyhouse', 'Wagewell'],
    pains: [
      'we correct about thirty payslips every single month',
      'each new country means another provider and another spreadsheet',
      'overtime is keyed in twice and is still wrong',
      'a late filing cost us a penalty in two quarters running',
    ],
    outcomes: ['payroll closed in one day', 'fewer than two corrections a month', 'one provider for six countries'],
  },
];

/** Companies on the buying side, with the name their domain begins with. */
export const ACCOUNTS = parseNames(`
Harbor & Pine Foods/harborpine, Kestrel Aviation/kestrelair, Bluewater Hotels, Ostrava Steelworks/ostravasteel,
Lumen Dental Group/lumendental, Fairmont Logistics/fairmontlog, Café Anatolia/cafeanatolia, Greenfield Co-op,
Pacific Crest Outfitters/pacificcrest, Tilbury Engineering/tilburyeng, Sonoma Medical Supply/sonomamed,
Arden & Wolfe LLP/ardenwolfe, Redwood Learning/redwoodlearn, Vantage Insurance/vantageins,
Bright Harbour Energy/brightharbour, Nimbus Robotics, Société Laurent/laurent, Copperline Telecom/copperline,
Maple Street Bakeries/maplestreet, Ironbridge Construction/ironbridge, Saffron Retail,
Delta Marine Services/deltamarine, Juniper Health, Orchard Lane Media/orchardlane,
Stonegate Properties/stonegate, Aurora Pharma, Wexford Motors, Polar Ice Cream/polarice
`);

export const CALL_SOURCES: readonly (string | null)[] = [
  'zoom',
  'gong',
  'teams',
  'google_meet',
  'dialer',
  'upload',
  null,
];
export const MONTHS: readonly string[] = [
  'January',
  'March',
  'April',
  'June',
  'July',
  'September',
  'October',
  'November',
];
export const WEEKDAYS: readonly string[] = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday'];

/** What buyers make do with today. */
export const MAKESHIFTS: readonly string[] = [
  'spreadsheets',
  'a shared inbox and a whiteboard',
  'a database that someone built in 2014',
  'exports and a macro',
  'three different portals',
];
export const CURRENCIES = [
  { sign: '$', code: 'USD' },
  { sign: '€', code: 'EUR' },
  { sign: '£', code: 'GBP' },
] as const;
