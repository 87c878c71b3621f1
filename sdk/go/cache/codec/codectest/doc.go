// Package codectest is the suite that every codec of the cache kit passes, and the values it is run with. It needs no library, so that
// codecs of users can be tested with it as well.
//
//	func TestCodec(t *testing.T) {
//		codectest.Run(t, mycodec.New[codectest.Large](), codectest.LargeValues(), codectest.Equal[codectest.Large])
//	}
package codectest
