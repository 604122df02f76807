/** Reads PromQL with the grammar that Prometheus' own user interface has. */
import { parser } from '@prometheus-io/lezer-promql';

type SyntaxNode = ReturnType<typeof parser.parse>['topNode'];

export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

export interface Selector {
  readonly name: string;
  readonly matchers: readonly Matcher[];
}

/** Labels that are kept or left out, or matched on, and the metrics that have to have them. */
export interface Grouping {
  readonly labels: readonly string[];
  readonly metrics: readonly string[];
}

export interface Query {
  /** What is no PromQL. */
  readonly faults: readonly string[];
  readonly selectors: readonly Selector[];
  readonly groupings: readonly Grouping[];
}

export function parseQuery(expr: string): Query {
  const tree = parser.parse(expr);
  const faults: string[] = [];
  const selectors: Selector[] = [];
  const groupings: Grouping[] = [];
  const textOf = (node: SyntaxNode): string => expr.slice(node.from, node.to);
  tree.iterate({
    enter({ type, node }) {
      if (type.isError) faults.push(`${expr.slice(0, node.from)} >>> ${expr.slice(node.from)}`);
      if (type.name === 'VectorSelector') selectors.push(selectorOf(node, textOf));
      if (type.name === 'GroupingLabels') groupings.push(groupingOf(node, textOf));
    },
  });
  return { faults, selectors, groupings };
}

type TextOf = (node: SyntaxNode) => string;

function selectorOf(node: SyntaxNode, textOf: TextOf): Selector {
  const name = node.getChild('Identifier');
  const matchers = node.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? [];
  return {
    name: name === null ? '' : textOf(name),
    matchers: matchers.map((matcher) => {
      const part = (kind: string): string => {
        const found = matcher.getChild(kind);
        return found === null ? '' : textOf(found);
      };
      return { label: part('LabelName'), operator: part('MatchOp'), value: part('StringLiteral').slice(1, -1) };
    }),
  };
}

/** `by (...)` and `on (...)` stand two levels below the expression whose metrics they are about. */
function groupingOf(node: SyntaxNode, textOf: TextOf): Grouping {
  const metrics: string[] = [];
  node.parent?.parent?.cursor().iterate(({ type, node: inner }) => {
    if (type.name === 'Identifier') metrics.push(textOf(inner));
  });
  return { labels: node.getChildren('LabelName').map(textOf), metrics };
}
