-- Lost: which check-outs were given up in the last day. A commit that was delayed may lend for one.
DROP TABLE given_up_check_out;
