package main

// This file owns the figures of seed 004: Apple M4, macOS, go-redis against a local Redis. B/op and allocs/op can be compared with ours,
// times only among themselves.

// seedRow is one benchmark of the seed.
type seedRow struct {
	name, shape, codec, op, mode string
	nanos, bytes, allocs         float64
}

var seed = []seedRow{
	{"JSON_Set_Small", "small", codecJSON, opSet, modeOne, 76117, 395, 9},
	{"JSON_Get_Small", "small", codecJSON, opGet, modeOne, 73693, 640, 14},
	{"Hash_Set_Small", "small", codecHash, opSet, modeOne, 76367, 568, 13},
	{"Hash_Get_Small", "small", codecHash, opGet, modeOne, 73181, 648, 18},
	{"GoccyJSON_Set_Small", "small", codecGoccy, opSet, modeOne, 73766, 395, 9},
	{"GoccyJSON_Get_Small", "small", codecGoccy, opGet, modeOne, 69749, 488, 9},
	{"MsgPack_Set_Small", "small", codecMsgpack, opSet, modeOne, 72779, 363, 9},
	{"MsgPack_Get_Small", "small", codecMsgpack, opGet, modeOne, 75809, 440, 11},
	{"Proto_Set_Small", "small", codecProtobuf, opSet, modeOne, 77006, 274, 8},
	{"Proto_Get_Small", "small", codecProtobuf, opGet, modeOne, 69974, 344, 10},
	{"Tinylib_Set_Small", "small", codecTinylib, opSet, modeOne, 82459, 336, 8},
	{"Tinylib_Get_Small", "small", codecTinylib, opGet, modeOne, 71489, 392, 10},
	{"JSON_Set_Medium", "medium", codecJSON, opSet, modeOne, 75399, 523, 9},
	{"JSON_Get_Medium", "medium", codecJSON, opGet, modeOne, 74379, 896, 17},
	{"Hash_Set_Medium", "medium", codecHash, opSet, modeOne, 76187, 680, 14},
	{"Hash_Get_Medium", "medium", codecHash, opGet, modeOne, 73930, 712, 18},
	{"GoccyJSON_Set_Medium", "medium", codecGoccy, opSet, modeOne, 73044, 523, 9},
	{"GoccyJSON_Get_Medium", "medium", codecGoccy, opGet, modeOne, 69874, 776, 9},
	{"MsgPack_Set_Medium", "medium", codecMsgpack, opSet, modeOne, 74208, 491, 10},
	{"MsgPack_Get_Medium", "medium", codecMsgpack, opGet, modeOne, 70724, 632, 13},
	{"Proto_Set_Medium", "medium", codecProtobuf, opSet, modeOne, 73615, 314, 8},
	{"Proto_Get_Medium", "medium", codecProtobuf, opGet, modeOne, 71225, 504, 12},
	{"JSON_Set_Large", "large", codecJSON, opSet, modeOne, 76890, 924, 9},
	{"JSON_Get_Large", "large", codecJSON, opGet, modeOne, 77461, 1624, 24},
	{"Hash_Set_Large", "large", codecHash, opSet, modeOne, 80471, 2297, 26},
	{"Hash_Get_Large", "large", codecHash, opGet, modeOne, 76101, 1936, 40},
	{"GoccyJSON_Set_Large", "large", codecGoccy, opSet, modeOne, 74107, 925, 9},
	{"GoccyJSON_Get_Large", "large", codecGoccy, opGet, modeOne, 70723, 1624, 9},
	{"MsgPack_Set_Large", "large", codecMsgpack, opSet, modeOne, 74139, 1259, 12},
	{"MsgPack_Get_Large", "large", codecMsgpack, opGet, modeOne, 71663, 1160, 19},
	{"Proto_Set_Large", "large", codecProtobuf, opSet, modeOne, 72708, 394, 8},
	{"Proto_Get_Large", "large", codecProtobuf, opGet, modeOne, 70902, 872, 18},
	{"Tinylib_Set_Large", "large", codecTinylib, opSet, modeOne, 75266, 703, 8},
	{"Tinylib_Get_Large", "large", codecTinylib, opGet, modeOne, 81878, 1176, 18},
	{"JSON_Set_LargeNested", "nested10", codecJSON, opSet, modeOne, 76655, 1149, 9},
	{"JSON_Get_LargeNested", "nested10", codecJSON, opGet, modeOne, 77389, 1968, 26},
	{"Hash_Set_LargeNested", "nested10", codecHash, opSet, modeOne, 86521, 5105, 63},
	{"GoccyJSON_Set_LargeNested", "nested10", codecGoccy, opSet, modeOne, 73797, 1148, 9},
	{"GoccyJSON_Get_LargeNested", "nested10", codecGoccy, opGet, modeOne, 71980, 2233, 9},
	{"MsgPack_Set_LargeNested", "nested10", codecMsgpack, opSet, modeOne, 74190, 1259, 12},
	{"MsgPack_Get_LargeNested", "nested10", codecMsgpack, opGet, modeOne, 72673, 1432, 21},
	{"Proto_Set_LargeNested", "nested10", codecProtobuf, opSet, modeOne, 73107, 378, 8},
	{"Proto_Get_LargeNested", "nested10", codecProtobuf, opGet, modeOne, 71224, 1309, 30},
	{"Pipeline_Set_Small", "small", codecJSON, opSet, modePipeline, 1841, 424, 7},
	{"MSet_Small", "small", codecJSON, opSet, modeMany, 1338, 180, 2},
	{"Pipeline_Set_Large", "large", codecJSON, opSet, modePipeline, 3217, 954, 7},
	{"MSet_Large", "large", codecJSON, opSet, modeMany, 3206, 709, 2},
}

// seedNanos returns a time of the seed, 0 if it has none.
func seedNanos(shape, codec, op, mode string) float64 {
	for _, s := range seed {
		if s.shape == shape && s.codec == codec && s.op == op && s.mode == mode {
			return s.nanos
		}
	}
	return 0
}
