/** What a call is about: the figures and names that its transcript, scorecard and insights all agree on. */
import type { Call } from './call.ts';
import { createRandom } from './random.ts';
import { ACCOUNTS, CURRENCIES, MAKESHIFTS, MONTHS, WEEKDAYS } from './vocabulary/business.ts';
import type { Facts } from './vocabulary/grammar.ts';

/** The deal's figures, in whole units of its currency. */
export interface DealFigures {
  readonly seats: number;
  readonly yearlyTotal: number;
  readonly discountPercent: number;
  readonly yearlyNet: number;
  readonly currency: (typeof CURRENCIES)[number];
}
export interface CallFacts {
  readonly facts: Facts;
  readonly deal: DealFigures;
}

/** The same for every part of the same call. */
export function createFacts(seed: number, call: Call): CallFacts {
  const random = createRandom(seed, 'facts', call.id);
  const { vendor } = call.workspace;
  const [buyer, colleague] = call.buyers;
  const [system = '', system2 = ''] = random.shuffled(vendor.systems);
  const [reference] = random.pick(ACCOUNTS.filter(([name]) => name !== call.account.name));
  const pain = random.pick(vendor.pains);
  const deal = createDeal(random.int(3, 40) * 10, vendor.unitPrice, random.int(2, 8) * 2.5, random.pick(CURRENCIES));
  const money = (amount: number): string => `${deal.currency.sign}${thousands(amount)}`;
  return {
    deal,
    facts: {
      seller: call.seller.givenName,
      buyer: buyer.givenName,
      colleague: colleague.givenName,
      account: call.account.name,
      product: vendor.product,
      module: vendor.modules,
      unit: vendor.unit,
      system,
      system2,
      rival: random.pick(vendor.rivals),
      tool: random.pick(MAKESHIFTS),
      reference,
      pain,
      pain_cap: pain.charAt(0).toUpperCase() + pain.slice(1),
      outcome: random.pick(vendor.outcomes),
      seats: thousands(deal.seats),
      price: money(vendor.unitPrice),
      total: money(deal.yearlyTotal),
      discount: String(deal.discountPercent),
      net: money(deal.yearlyNet),
      budget: money(Math.round((deal.yearlyNet * (0.7 + random.next() * 0.25)) / 1000) * 1000),
      cost_low: String(random.int(18, 29)),
      cost_high: String(random.int(31, 48)),
      month: random.pick(MONTHS),
      weekday: random.pick(WEEKDAYS),
      time: random.pick(['nine thirty', 'ten', 'eleven', 'two in the afternoon', 'half past three']),
    },
  };
}

function createDeal(
  seats: number,
  unitPrice: number,
  discountPercent: number,
  currency: DealFigures['currency'],
): DealFigures {
  const yearlyTotal = seats * unitPrice * 12;
  const yearlyNet = Math.round(yearlyTotal * (1 - discountPercent / 100));
  return { seats, yearlyTotal, discountPercent, yearlyNet, currency };
}

function thousands(amount: number): string {
  return String(amount).replace(/\B(?=(?:\d{3})+$)/g, ',');
}
